"""Fast path of users: plain bodies, as providers send them, are read and rendered without the library.

A body is plain when each name is spelled as in the RFC and each value has exactly the type that its
attribute has. Such a body means the same to the library, which a test holds; whatever else is sent, and
whatever breaks a rule, is the library's to read or to refuse (decision 0093).
"""

from http import HTTPStatus
from typing import Any, Literal

import msgspec
from scim2_server.responses import ScimResponse

from hublet.scim.protocol.resources import NO_ID, NO_STAMP, body_of, version_of
from hublet.scim.records import DirectoryRequest, ProvisionedAddress, ProvisionedUser

_USER = "urn:ietf:params:scim:schemas:core:2.0:User"
_ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
_JSON = {"application/scim+json", "application/json"}
# No engine stores it, so the library's way has a sentence about it.
_NUL = b"\\u0000"

_Text = str | None
_Nothing = tuple[()]


class _PlainObject(msgspec.Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    """Attributes of a plain body. Those that the hub does not store are read and dropped."""


class _PlainName(_PlainObject):
    given_name: _Text = None
    family_name: _Text = None
    formatted: _Text = None
    middle_name: _Text = None
    honorific_prefix: _Text = None
    honorific_suffix: _Text = None


class _PlainEmail(_PlainObject):
    value: str
    primary: bool | None = None
    type: _Text = None
    display: _Text = None


class _PlainEntry(_PlainObject):
    value: _Text = None
    primary: bool | None = None
    type: _Text = None
    display: _Text = None


class _PlainAddress(_PlainObject):
    formatted: _Text = None
    street_address: _Text = None
    locality: _Text = None
    region: _Text = None
    postal_code: _Text = None
    country: _Text = None
    type: _Text = None


class _PlainManager(_PlainObject):
    value: _Text = None
    display_name: _Text = None


class _PlainEnterprise(_PlainObject):
    employee_number: _Text = None
    cost_center: _Text = None
    organization: _Text = None
    division: _Text = None
    department: _Text = None
    manager: _PlainManager | str | None = None


class _PlainMeta(_PlainObject):
    resource_type: _Text = None


class _PlainUser(_PlainObject):
    schemas: list[
        Literal[
            "urn:ietf:params:scim:schemas:core:2.0:User",
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User",
        ]
    ]
    user_name: str
    external_id: _Text = None
    name: _PlainName | None = None
    emails: list[_PlainEmail] | None = None
    active: bool | None = None
    display_name: _Text = None
    nick_name: _Text = None
    title: _Text = None
    user_type: _Text = None
    preferred_language: _Text = None
    locale: _Text = None
    timezone: _Text = None
    password: _Text = None
    meta: _PlainMeta | None = None
    groups: _Nothing = ()
    roles: _Nothing = ()
    phone_numbers: list[_PlainEntry] | None = None
    addresses: list[_PlainAddress] | None = None
    enterprise: _PlainEnterprise | None = msgspec.field(default=None, name=_ENTERPRISE)


_DECODER = msgspec.json.Decoder(_PlainUser)


def read_creation(call: DirectoryRequest) -> ProvisionedUser | None:
    """Return the user that a plain request wants to create; None when the library must look."""
    if (call.method, call.path) != ("POST", "/Users") or not _is_json(call):
        return None
    if _NUL in call.body:
        return None
    try:
        body = _DECODER.decode(call.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    emails = body.emails or []
    if _USER not in body.schemas or sum(each.primary is True for each in emails) > 1:
        return None
    return _user_record(body, emails)


def _is_json(call: DirectoryRequest) -> bool:
    types = [value for name, value in call.headers if name == "content-type"]
    return len(types) == 1 and types[0].partition(";")[0].strip().lower() in _JSON


def _user_record(body: _PlainUser, emails: list[_PlainEmail]) -> ProvisionedUser:
    name = body.name or _PlainName()
    return ProvisionedUser(
        id=NO_ID,
        user_name=body.user_name,
        external_id=body.external_id,
        given_name=name.given_name,
        family_name=name.family_name,
        emails=tuple(
            ProvisionedAddress(value=each.value, primary=each.primary, type=each.type)
            for each in emails
        ),
        active=body.active is not False,
        stamp=NO_STAMP,
    )


def creation_response(user: ProvisionedUser, *, base_url: str) -> ScimResponse:
    body = body_of(user, base_url=base_url)
    location: Any = body["meta"]["location"]
    headers = {
        "Content-Location": location,
        "ETag": version_of(user.stamp),
        "Location": location,
    }
    return ScimResponse(HTTPStatus.CREATED, body, headers)
