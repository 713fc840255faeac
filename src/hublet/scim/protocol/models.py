"""Models for the SCIM library: the attributes of users and groups that the hub stores."""

from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any

import scim2_models
from pydantic import Field
from scim2_models import (
    AuthenticationScheme,
    Bulk,
    CaseExact,
    ChangePassword,
    ComplexAttribute,
    EnterpriseUser,
    ETag,
    Filter,
    Mutability,
    Pagination,
    Patch,
    Reference,
    Required,
    Resource,
    ResourceType,
    Returned,
    Schema,
    ScimPolicy,
    ScimProvider,
    ServiceProviderConfig,
    Sort,
    Uniqueness,
)

MAX_RESULTS = 200
DEFAULT_RESULTS = 100


class Name(ComplexAttribute):
    given_name: str | None = None
    """The first name."""

    family_name: str | None = None
    """The last name."""


class Email(ComplexAttribute):
    value: Annotated[str | None, Required.true] = None
    """An e-mail address."""

    primary: bool | None = None
    """Whether it is the preferred one."""

    # Interface 2.6: types are not supported. Providers still name addresses by their type.
    type: Annotated[str | None, Mutability.write_only, Returned.never] = None
    """Taken so that a change can name an address by it; never shown."""


class User(Resource[Any]):
    """Whoever has an account of their own."""

    __schema__ = scim2_models.User.__schema__

    user_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    """The name that the identity provider knows the user by."""

    name: Name | None = None
    """The parts of the user's name."""

    emails: list[Email] | None = None
    """E-mail addresses of the user."""

    active: bool | None = None
    """Whether the user is provisioned: an inactive one is no member of the organization."""


class ManagedUser(User):
    """Whose account belongs to the organization."""

    user_name: Annotated[str | None, Uniqueness.server, Required.true, Mutability.immutable] = None
    """The name of the account; it does not change."""


# The schema takes its name from the class, and both kinds are users.
ManagedUser.__name__ = "User"


class Member(ComplexAttribute):
    value: Annotated[str | None, Mutability.immutable, CaseExact.true] = None
    """The id of a user."""

    ref: Annotated[Reference["User"] | None, Mutability.immutable] = Field(
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    """The address of the user."""

    type: Annotated[str | None, Mutability.immutable] = Field(None, examples=["User"])
    """Always `User`."""

    display: Annotated[str | None, Mutability.read_only, Returned.request] = None
    """The name of the user; shown where it is asked for."""


class Group(Resource[Any]):
    __schema__ = scim2_models.Group.__schema__

    display_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    """The name of the group; it may say which role its members have."""

    members: list[Member] | None = None
    """Users in the group."""


class _AnyEmail(ComplexAttribute):
    value: str | None = None
    display: str | None = None
    type: str | None = None
    primary: bool | None = None


class AnyUser(scim2_models.User[EnterpriseUser]):
    """What RFC 7643 knows of a user.

    A provider may send all of it, and the hub stores a part; other attributes are refused.
    """

    # The library's own takes no addresses at hosts such as corp.local.
    emails: list[_AnyEmail] | None = None  # type: ignore[assignment]


_SHAPES = {
    "remove_value_as_filter": ScimPolicy.RemoveValue.apply,
    "unmatched_path_filter": ScimPolicy.UnmatchedPathFilter.create,
}
STRICT = ScimPolicy(**_SHAPES)
_LENIENT = ScimPolicy(unknown=ScimPolicy.Unknown.ignore, **_SHAPES)


@cache
def provider_of(*, managed: bool) -> ScimProvider:
    """Describe what an organization's directory can do."""
    user: type[User] = ManagedUser if managed else User
    provider = ScimProvider(
        models=[user, Group],
        resource_types=[
            _resource_type("User", "/Users", user, "Members of the organization."),
            _resource_type("Group", "/Groups", Group, "Groups that give members their roles."),
        ],
        config=_config(),
        policy=_LENIENT,
    )
    _describe_schemas(provider.schemas)
    return provider


def _describe_schemas(schemas: Iterable[Schema]) -> None:
    """Describe a user as responses have it: without `emails.type`, always with `active`."""
    for schema in schemas:
        for attribute in schema.attributes or ():
            if attribute.name == "active":
                attribute.required = Required.true
            if attribute.name == "emails":
                parts = attribute.sub_attributes or []
                attribute.sub_attributes = [part for part in parts if part.name != "type"]


def _resource_type(
    name: str, endpoint: str, model: type[Resource[Any]], about: str
) -> ResourceType:
    described = {"id": name, "name": name, "description": about, "endpoint": endpoint}
    return ResourceType.model_validate(described | {"schema": str(model.__schema__)})


def _config() -> ServiceProviderConfig:
    return ServiceProviderConfig(
        patch=Patch(supported=True),
        bulk=Bulk(supported=False, max_operations=0, max_payload_size=0),
        filter=Filter(supported=True, max_results=MAX_RESULTS),
        change_password=ChangePassword(supported=False),
        sort=Sort(supported=True),
        etag=ETag(supported=True),
        pagination=Pagination(
            cursor=False,
            index=True,
            default_pagination_method=Pagination.DefaultPaginationMethod.index,
            default_page_size=DEFAULT_RESULTS,
            max_page_size=MAX_RESULTS,
        ),
        authentication_schemes=[
            AuthenticationScheme(
                type=AuthenticationScheme.Type.oauthbearertoken,
                name="Access token",
                description="A token with the role write of an owner of the organization.",
                primary=True,
            )
        ],
    )
