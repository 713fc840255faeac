"""Plain bodies mean the same on the fast path and to the library; other bodies are the library's."""

from typing import Any

import msgspec
import pytest

from hublet.scim.protocol import plain_users
from hublet.scim.protocol.models import ManagedUser, User
from hublet.scim.protocol.resources import body_of, user_record, user_resource
from hublet.scim.protocol.server import _service
from hublet.scim.records import DirectoryRequest, ProvisionedAddress, ProvisionedUser, Stamp
from scim.directories import USER

ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
BASE = "http://hub.test/scim/v2"
BARE = {"schemas": [USER], "userName": "ada"}
ADDRESS = {"value": "ada@corp.test"}


def _request(
    body: bytes, *, content_type: str = "application/scim+json; charset=utf-8", path: str = "/Users"
) -> DirectoryRequest:
    return DirectoryRequest(
        method="POST",
        base_url=BASE,
        path=path,
        query={},
        headers=[("host", "hub.test"), ("content-type", content_type)],
        body=body,
    )


def _as_the_library_reads(body: bytes, *, managed: bool) -> ProvisionedUser:
    service = _service(managed=managed)
    with service.provider:
        resource = service.read_creation(
            service.resource_type_at("Users"), body, "application/scim+json"
        )
    assert isinstance(resource, ManagedUser if managed else User)
    return user_record(resource)


@pytest.mark.parametrize("managed", [False, True])
@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param({}, id="a name alone"),
        pytest.param({"schemas": [ENTERPRISE, USER]}, id="two schemas"),
        pytest.param({"userName": ""}, id="an empty name"),
        pytest.param({"userName": " Ädä\n"}, id="a name that is refused later"),
        pytest.param({"externalId": "00u1", "active": True}, id="an external id"),
        pytest.param({"active": False}, id="inactive"),
        pytest.param({"active": None, "externalId": None, "name": None}, id="null is nothing"),
        pytest.param({"name": {}}, id="an empty name object"),
        pytest.param({"name": {"givenName": "Ada", "familyName": "L"}}, id="a name"),
        pytest.param({"name": {"formatted": "Ada L", "givenName": ""}}, id="a formatted name"),
        pytest.param({"emails": []}, id="no addresses"),
        pytest.param({"emails": [ADDRESS, ADDRESS]}, id="an address twice"),
        pytest.param({"emails": [{"value": ""}]}, id="an empty address"),
        pytest.param(
            {"emails": [ADDRESS | {"type": "x", "primary": True, "display": "A"}, ADDRESS]},
            id="whole addresses",
        ),
        pytest.param({"emails": [ADDRESS | {"primary": False}] * 2}, id="none is primary"),
        pytest.param(
            {
                "displayName": "Ada",
                "nickName": "A",
                "title": "Countess",
                "userType": "x",
                "preferredLanguage": "en",
                "locale": "en-US",
                "timezone": "Nowhere",
                "password": "secret",
                "meta": {"resourceType": "User"},
                "groups": [],
                "roles": [],
                "phoneNumbers": [{"value": "1", "type": "work", "primary": True}] * 2,
                "addresses": [{"formatted": "x", "streetAddress": "y", "type": "work"}],
                ENTERPRISE: {"department": "Engines", "manager": {"value": "1"}},
            },
            id="what is not stored",
        ),
        pytest.param({ENTERPRISE: {"manager": "1"}}, id="a manager as a text"),
    ],
)
def test_a_plain_body_means_what_it_means_to_the_library(
    attributes: dict[str, Any], *, managed: bool
) -> None:
    body = msgspec.json.encode(BARE | attributes)

    found = plain_users.read_creation(_request(body))

    assert found is not None
    assert found == _as_the_library_reads(body, managed=managed)


# What the library knows other forms of, or refuses with a sentence.
OTHERS: tuple[dict[str, Any], ...] = (
    {"schemas": []},
    {"schemas": [ENTERPRISE]},
    {"schemas": [USER, "urn:x"]},
    {"userName": None},
    {"userName": 7},
    {"USERNAME": "bob"},
    {"user_name": "bob"},
    {"shoeSize": 7},
    {"active": "True"},
    {"active": 1},
    {"name": "Ada"},
    {"name": {"nickName": "x"}},
    {"emails": ADDRESS},
    {"emails": [{}]},
    {"emails": [{"value": None}]},
    {"emails": [ADDRESS | {"primary": "true"}]},
    {"emails": [ADDRESS | {"primary": True}] * 2},
    {"emails": [ADDRESS | {"$ref": "x"}]},
    {"groups": [{"value": "1"}]},
    {"meta": {"shoe": 1}},
    {ENTERPRISE: {"shoe": 1}},
)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="no JSON"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'{"schemas":["%s"],"userName":"\\u0000"}' % USER.encode(), id="NUL"),
        pytest.param(b'{"schemas":["%s"],"userName":"\\ud800"}' % USER.encode(), id="half a pair"),
        pytest.param(b'{"schemas":["%s"],"userName":"\xff"}' % USER.encode(), id="no UTF-8"),
        *(
            pytest.param(msgspec.json.encode(BARE | attributes), id=str(attributes))
            for attributes in OTHERS
        ),
    ],
)
def test_whatever_else_is_sent_is_the_librarys(body: bytes) -> None:
    assert plain_users.read_creation(_request(body)) is None


@pytest.mark.parametrize(
    "changes",
    [{"content_type": "text/plain"}, {"path": "/users"}, {"path": "/Users/.search"}],
    ids=str,
)
def test_only_json_for_the_users_is_read(changes: dict[str, str]) -> None:
    assert plain_users.read_creation(_request(msgspec.json.encode(BARE), **changes)) is None


def test_a_created_user_is_answered_as_the_library_answers() -> None:
    user = ProvisionedUser(
        id="a" * 24,
        user_name="ada",
        external_id="x1",
        given_name="Ada",
        emails=(ProvisionedAddress(value="a@corp.test", primary=True, type="work"),),
        stamp=Stamp(created_at=1_700_000_000_000_000, updated_at=1_700_000_000_000_000),
    )
    service = _service(managed=True)
    with service.provider:
        answered = service.creation_response(BASE, user_resource(user, managed=True))

    response = plain_users.creation_response(user, base_url=BASE)

    assert (response.status, response.headers) == (answered.status, answered.headers)
    assert response.body == answered.body == body_of(user, base_url=BASE)
