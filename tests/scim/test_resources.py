"""A list renders users and groups exactly as the library does."""

import pytest
from scim2_models import Context, ResponseParameters
from scim2_server.utils import parametrize

from hublet.scim.protocol.models import Group
from hublet.scim.protocol.resources import (
    body_of,
    group_resource,
    member_attributes,
    members_of,
    user_resource,
)
from hublet.scim.protocol.server import _service
from hublet.scim.records import (
    ProvisionedAddress,
    ProvisionedGroup,
    ProvisionedMember,
    ProvisionedUser,
    Stamp,
)

BASE = "http://hub.test/scim/v2"
WHOLE = Stamp(created_at=1_700_000_000_000_000, updated_at=1_700_000_000_123_000, version=7)
BARE = Stamp(created_at=1, updated_at=1_700_000_000_100_000)


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(ProvisionedUser(id="a" * 24, user_name="ada", stamp=BARE), id="a bare user"),
        pytest.param(
            ProvisionedUser(
                id="a" * 24,
                user_name="ada",
                external_id="x1",
                given_name="Ada",
                family_name="Lovelace",
                emails=(
                    ProvisionedAddress(value="a@corp.test", primary=True, type="work"),
                    ProvisionedAddress(value="b@corp.test", primary=False),
                    ProvisionedAddress(value="c@corp.test", type="home"),
                ),
                active=False,
                stamp=WHOLE,
            ),
            id="a whole user",
        ),
        pytest.param(
            ProvisionedUser(id="a" * 24, user_name="ada", family_name="Byron", stamp=WHOLE),
            id="half a name",
        ),
        pytest.param(
            ProvisionedGroup(id="b" * 24, display_name="G", stamp=BARE), id="a bare group"
        ),
        pytest.param(
            ProvisionedGroup(
                id="b" * 24,
                display_name="G",
                external_id="g1",
                members=(ProvisionedMember(id="a" * 24, user_name="ada"),),
                stamp=WHOLE,
            ),
            id="a whole group",
        ),
    ],
)
def test_a_record_is_written_as_the_library_writes_it(
    record: ProvisionedUser | ProvisionedGroup,
) -> None:
    service = _service(managed=False)
    with service.provider:
        resource = (
            user_resource(record, managed=False)
            if isinstance(record, ProvisionedUser)
            else group_resource(record)
        )
        written = service.publish(BASE, resource).model_dump(
            scim_ctx=Context.RESOURCE_QUERY_RESPONSE
        )

    assert body_of(record, base_url=BASE) == written
    assert list(body_of(record, base_url=BASE)) == list(written)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"attributes": ["members"]},
        {"attributes": ["displayName"]},
        {"attributes": ["members.value"]},
        {"attributes": ["MEMBERS.Display", "members.$ref"]},
        {"attributes": ["members", "members.display"]},
        {"attributes": ["urn:ietf:params:scim:schemas:core:2.0:Group:members"]},
        {"excludedAttributes": ["members"]},
        {"excludedAttributes": ["displayName"]},
        {"excludedAttributes": ["members.$ref", "members.type"]},
        {"excludedAttributes": ["members.value", "members.type", "members.$ref"]},
    ],
)
def test_members_are_shown_as_the_library_shows_them(asked: dict[str, list[str]]) -> None:
    service = _service(managed=False)
    members = tuple(ProvisionedMember(id=letter * 24, user_name=letter) for letter in "ab")
    group = ProvisionedGroup(id="c" * 24, display_name="G", members=members, stamp=WHOLE)
    with service.provider:
        parameters = parametrize(ResponseParameters, Group).model_validate(asked)
        written = service.publish(BASE, group_resource(group)).model_dump(
            scim_ctx=Context.RESOURCE_QUERY_RESPONSE, response_parameters=parameters
        )

    attributes = member_attributes(parameters)
    found = members_of(group, base_url=BASE, attributes=attributes) if attributes else None
    assert found == written.get("members")
