"""Wire schemas of SCIM, for the description only: the SCIM library reads and writes."""

from typing import Annotated, Any, Literal

from pydantic import MISSING, Field

from hublet.core.schema import ObjectId, Schema
from hublet.scim.errors import MEDIA_TYPE

_DateTime = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class ScimMeta(Schema):
    resourceType: str | MISSING = MISSING
    created: _DateTime | MISSING = MISSING
    lastModified: _DateTime | MISSING = MISSING
    location: str | MISSING = MISSING
    version: str | MISSING = MISSING


class ScimName(Schema):
    givenName: str | MISSING = MISSING
    familyName: str | MISSING = MISSING


class ScimEmail(Schema):
    value: str | MISSING = MISSING
    primary: bool | MISSING = MISSING


class ScimUser(Schema):
    """A user of the directory (interface 2.6); what is not asked for may be absent."""

    schemas: list[str]
    id: ObjectId
    externalId: str | MISSING = MISSING
    userName: str | MISSING = MISSING
    name: ScimName | MISSING = MISSING
    emails: list[ScimEmail] | MISSING = MISSING
    active: bool | MISSING = MISSING
    meta: ScimMeta | MISSING = MISSING


class ScimGroupMember(Schema):
    value: ObjectId | MISSING = MISSING
    ref: Annotated[str | MISSING, Field(alias="$ref")] = MISSING
    type: Literal["User"] | MISSING = MISSING
    display: str | MISSING = MISSING


class ScimGroup(Schema):
    """A group of the directory; what is not asked for may be absent."""

    schemas: list[str]
    id: ObjectId
    externalId: str | MISSING = MISSING
    displayName: str | MISSING = MISSING
    members: list[ScimGroupMember] | MISSING = MISSING
    meta: ScimMeta | MISSING = MISSING


class _List(Schema):
    schemas: list[str]
    totalResults: int
    itemsPerPage: int
    startIndex: int


class ScimUserList(_List):
    Resources: list[ScimUser] | MISSING = MISSING


class ScimGroupList(_List):
    Resources: list[ScimGroup] | MISSING = MISSING


class ScimList(_List):
    """Users, and groups after them."""

    Resources: list[ScimUser | ScimGroup] | MISSING = MISSING


class ScimSupported(Schema):
    supported: bool


class ScimBulk(ScimSupported):
    maxOperations: int
    maxPayloadSize: int


class ScimFilterSupport(ScimSupported):
    maxResults: int


class ScimPagination(Schema):
    cursor: bool
    index: bool
    defaultPaginationMethod: Literal["index"]
    defaultPageSize: int
    maxPageSize: int


class ScimAuthenticationScheme(Schema):
    type: str
    name: str
    description: str
    primary: bool


class ScimServiceProviderConfig(Schema):
    """What this hub can do of SCIM."""

    schemas: list[str]
    patch: ScimSupported
    bulk: ScimBulk
    filter: ScimFilterSupport
    changePassword: ScimSupported
    sort: ScimSupported
    etag: ScimSupported
    pagination: ScimPagination
    authenticationSchemes: list[ScimAuthenticationScheme]
    meta: ScimMeta


class ScimResourceType(Schema):
    schemas: list[str]
    id: str
    name: str
    description: str
    endpoint: str
    # `schema` is a method of every model.
    schema_: Annotated[str, Field(alias="schema")]
    meta: ScimMeta


class ScimResourceTypeList(_List):
    Resources: list[ScimResourceType]


class ScimAttribute(Schema):
    name: str
    type: str
    multiValued: bool
    description: str | MISSING = MISSING
    required: bool | MISSING = MISSING
    canonicalValues: list[str] | MISSING = MISSING
    caseExact: bool | MISSING = MISSING
    mutability: str | MISSING = MISSING
    returned: str | MISSING = MISSING
    uniqueness: str | MISSING = MISSING
    referenceTypes: list[str] | MISSING = MISSING
    subAttributes: "list[ScimAttribute] | MISSING" = MISSING


class ScimSchema(Schema):
    schemas: list[str]
    id: str
    name: str
    description: str | MISSING = MISSING
    attributes: list[ScimAttribute]
    meta: ScimMeta


class ScimSchemaList(_List):
    Resources: list[ScimSchema]


class ScimError(Schema):
    """The form of errors of SCIM endpoints (RFC 7644, 3.12)."""

    schemas: list[str]
    status: str
    scimType: str | MISSING = MISSING
    detail: str


_SENTENCES = {
    400: "The request breaks a rule; `scimType` is a word of RFC 7644, `detail` a sentence.",
    401: "There is no token, or it is not valid any more.",
    403: "The token may not write, its owner is no owner of the organization, or the plan is another.",
    404: "There is no such organization, or nothing of this id in its directory.",
    409: "A value that must be unique is taken, or the last owner would go.",
    412: "The version in `If-Match` is not the current one.",
    413: "The body is larger than this hub takes.",
    415: "The body is not JSON.",
    429: "There were too many requests; try again after the time in `Retry-After`.",
    501: "This part of SCIM does not exist here.",
    503: "A part of the hub cannot answer now; the same request may succeed later.",
}


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the errors that any operation has, and these."""
    shared = {400, 401, 403, 404, 429, 503}
    return {
        status: {"model": ScimError, "description": _SENTENCES[status]}
        for status in sorted(shared.union(statuses))
    }


_TEXT: dict[str, Any] = {"type": "string"}
_EMAILS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"value": _TEXT, "type": _TEXT, "primary": {"type": "boolean"}},
        "required": ["value"],
    },
}
_SCHEMAS = {"type": "array", "items": _TEXT}


def _body(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    # Open: providers send more attributes than are stored, in any case of their names.
    schema = {"type": "object", "properties": properties, "required": list(required)}
    content = {media: {"schema": schema} for media in (MEDIA_TYPE, "application/json")}
    return {"requestBody": {"required": True, "content": content}}


USER_BODY = _body(
    {
        "schemas": _SCHEMAS,
        "userName": _TEXT,
        "externalId": _TEXT,
        "name": {"type": "object", "properties": {"givenName": _TEXT, "familyName": _TEXT}},
        "emails": _EMAILS,
        "active": {"type": "boolean"},
    },
    "schemas",
    "userName",
)
GROUP_BODY = _body(
    {
        "schemas": _SCHEMAS,
        "displayName": _TEXT,
        "externalId": _TEXT,
        "members": {
            "type": "array",
            "items": {"type": "object", "properties": {"value": _TEXT}, "required": ["value"]},
        },
    },
    "schemas",
    "displayName",
)
_OPERATION = {
    "type": "object",
    "properties": {
        "op": {"type": "string", "pattern": "^([Aa]dd|[Rr]emove|[Rr]eplace)$"},
        "path": _TEXT,
        "value": {},
    },
    "required": ["op"],
}
PATCH_BODY = _body(
    {"schemas": _SCHEMAS, "Operations": {"type": "array", "minItems": 1, "items": _OPERATION}},
    "schemas",
    "Operations",
)
SEARCH_BODY = _body(
    {
        "schemas": _SCHEMAS,
        "filter": _TEXT,
        "sortBy": _TEXT,
        "sortOrder": {"type": "string", "enum": ["ascending", "descending"]},
        "startIndex": {"type": "integer"},
        "count": {"type": "integer"},
        "attributes": _SCHEMAS,
        "excludedAttributes": _SCHEMAS,
    },
    "schemas",
)
