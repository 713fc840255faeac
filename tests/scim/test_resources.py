"""A list writes users and groups just as the library does."""

import pytest
from scim2_models import Context

from hublet.scim.protocol import _service
from hublet.scim.records import Address, GroupMember, ScimGroup, ScimUser, Stamp
from hublet.scim.resources import body_of, group_resource, user_resource

BASE = "http://hub.test/scim/v2"
WHOLE = Stamp(created_at=1_700_000_000_000_000, updated_at=1_700_000_000_123_000, version=7)
BARE = Stamp(created_at=1, updated_at=1_700_000_000_100_000)


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(ScimUser(id="a" * 24, user_name="ada", stamp=BARE), id="a bare user"),
        pytest.param(
            ScimUser(
                id="a" * 24,
                user_name="ada",
                external_id="x1",
                given_name="Ada",
                family_name="Lovelace",
                emails=(
                    Address(value="a@corp.test", primary=True, type="work"),
                    Address(value="b@corp.test", primary=False),
                    Address(value="c@corp.test", type="home"),
                ),
                active=False,
                stamp=WHOLE,
            ),
            id="a whole user",
        ),
        pytest.param(
            ScimUser(id="a" * 24, user_name="ada", family_name="Byron", stamp=WHOLE),
            id="half a name",
        ),
        pytest.param(ScimGroup(id="b" * 24, display_name="G", stamp=BARE), id="a bare group"),
        pytest.param(
            ScimGroup(
                id="b" * 24,
                display_name="G",
                external_id="g1",
                members=(GroupMember(id="a" * 24, user_name="ada"),),
                stamp=WHOLE,
            ),
            id="a whole group",
        ),
    ],
)
def test_a_record_is_written_as_the_library_writes_it(record: ScimUser | ScimGroup) -> None:
    service = _service(managed=False)
    with service.provider:
        resource = (
            user_resource(record, managed=False)
            if isinstance(record, ScimUser)
            else group_resource(record)
        )
        written = service.publish(BASE, resource).model_dump(
            scim_ctx=Context.RESOURCE_QUERY_RESPONSE
        )

    assert body_of(record, base_url=BASE) == written
    assert list(body_of(record, base_url=BASE)) == list(written)
