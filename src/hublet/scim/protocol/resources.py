"""Conversion between records of the hub and resources of the SCIM library."""

from collections.abc import Iterable, Sequence
from typing import Any

from scim2_models import Meta, Reference, ResponseParameters

from hublet.core.clock import from_micros
from hublet.scim.protocol.models import Email, Group, ManagedUser, Member, Name, User
from hublet.scim.records import (
    ProvisionedAddress,
    ProvisionedGroup,
    ProvisionedMember,
    ProvisionedUser,
    Stamp,
)

# Of a record that is not stored yet; the service sets both.
NO_ID = ""
NO_STAMP = Stamp(created_at=0, updated_at=0)

# The name of a member is rendered only on request.
_DEFAULT_MEMBER_ATTRIBUTES = ("value", "$ref", "type")


def version_of(stamp: Stamp) -> str:
    # RFC 7644, 3.14: weak, because the same version may be written in another order.
    return f'W/"{stamp.version}"'


def _meta(resource_type: str, stamp: Stamp) -> Meta:
    return Meta(
        resource_type=resource_type,
        created=from_micros(stamp.created_at),
        last_modified=from_micros(stamp.updated_at),
        version=version_of(stamp),
    )


def user_resource(user: ProvisionedUser, *, managed: bool) -> User:
    names = {"given_name": user.given_name, "family_name": user.family_name}
    emails = [Email(value=each.value, primary=each.primary, type=each.type) for each in user.emails]
    return (ManagedUser if managed else User)(
        id=user.id,
        external_id=user.external_id,
        user_name=user.user_name,
        name=Name(**names) if any(names.values()) else None,
        emails=emails or None,
        active=user.active,
        meta=_meta("User", user.stamp),
    )


def user_record(resource: User, *, before: ProvisionedUser | None = None) -> ProvisionedUser:
    """Return a user as the provider sends it; values of the hub are copied from before."""
    name = resource.name or Name()
    was_active = True if before is None else before.active
    return ProvisionedUser(
        id=before.id if before else NO_ID,
        user_id=before.user_id if before else None,
        user_name=resource.user_name or "",
        external_id=resource.external_id,
        given_name=name.given_name,
        family_name=name.family_name,
        emails=tuple(
            ProvisionedAddress(value=each.value or "", primary=each.primary, type=each.type)
            for each in resource.emails or ()
        ),
        # A replacement without it neither deactivates nor activates the user.
        active=was_active if resource.active is None else resource.active,
        stamp=before.stamp if before else NO_STAMP,
        **({"former_roles": before.former_roles} if before else {}),
    )


def group_resource(group: ProvisionedGroup) -> Group:
    members: list[Any] = [
        Member(
            value=each.id,
            ref=Reference(f"Users/{each.id}"),
            type="User",
            display=each.user_name,
        )
        for each in group.members
    ]
    return Group(
        id=group.id,
        external_id=group.external_id,
        display_name=group.display_name,
        members=members or None,
        meta=_meta("Group", group.stamp),
    )


def group_record(resource: Group, *, before: ProvisionedGroup | None = None) -> ProvisionedGroup:
    return ProvisionedGroup(
        id=before.id if before else NO_ID,
        display_name=resource.display_name or "",
        external_id=resource.external_id,
        members=tuple(
            ProvisionedMember(id=_member_id(each), user_name="") for each in resource.members or ()
        ),
        stamp=before.stamp if before else NO_STAMP,
    )


def _member_id(member: Member) -> str:
    """Return the id of a member; some providers send only the address of it."""
    return member.value or str(member.ref or "").rpartition("/")[2]


def body_of(record: ProvisionedUser | ProvisionedGroup, *, base_url: str) -> dict[str, Any]:
    """Render a whole record exactly as the library does.

    This takes a hundredth of the time, and a page has up to two hundred records.
    """
    if isinstance(record, ProvisionedUser):
        return _body(record, "User", f"{base_url}/Users/{record.id}", _user_attributes(record))
    attributes = _group_attributes(record, base_url)
    return _body(record, "Group", f"{base_url}/Groups/{record.id}", attributes)


def _body(
    record: ProvisionedUser | ProvisionedGroup, name: str, location: str, attributes: dict[str, Any]
) -> dict[str, Any]:
    meta = {
        "resourceType": name,
        "created": _timestamp(record.stamp.created_at),
        "lastModified": _timestamp(record.stamp.updated_at),
        "location": location,
        "version": version_of(record.stamp),
    }
    schemas = [str((User if name == "User" else Group).__schema__)]
    body = {"schemas": schemas, "id": record.id, "externalId": record.external_id, "meta": meta}
    return _without_none(body | attributes)


def _user_attributes(user: ProvisionedUser) -> dict[str, Any]:
    name = _without_none({"givenName": user.given_name, "familyName": user.family_name})
    emails = [_without_none({"value": e.value, "primary": e.primary}) for e in user.emails]
    return {
        "userName": user.user_name,
        "name": name or None,
        "emails": emails or None,
        "active": user.active,
    }


def _group_attributes(group: ProvisionedGroup, base_url: str) -> dict[str, Any]:
    members = members_of(group, base_url=base_url)
    return {"displayName": group.display_name, "members": members or None}


def members_of(
    group: ProvisionedGroup,
    *,
    base_url: str,
    attributes: Sequence[str] = _DEFAULT_MEMBER_ATTRIBUTES,
) -> list[dict[str, Any]]:
    """Render the members of a group with these attributes."""
    members = []
    for each in group.members:
        ref = f"{base_url}/Users/{each.id}"
        whole = {"value": each.id, "$ref": ref, "type": "User", "display": each.user_name}
        members.append({name: whole[name] for name in attributes})
    return members


def member_attributes(parameters: ResponseParameters[Any] | None) -> tuple[str, ...]:
    """Return the attributes of members in a response; without any it has no members."""
    included = _member_paths(parameters.attributes) if parameters else set()
    if parameters and parameters.attributes:
        names = {*included, *(_DEFAULT_MEMBER_ATTRIBUTES if "" in included else ())}
        return tuple(
            name for name in (*_DEFAULT_MEMBER_ATTRIBUTES, "display") if name.lower() in names
        )
    excluded = _member_paths(parameters.excluded_attributes) if parameters else set()
    return (
        ()
        if "" in excluded
        else tuple(n for n in _DEFAULT_MEMBER_ATTRIBUTES if n.lower() not in excluded)
    )


def _member_paths(paths: Iterable[Any] | None) -> set[str]:
    """Return the attributes of members that the paths name; "" stands for `members` itself."""
    named = (str(path).rpartition(":")[2].lower().partition(".") for path in paths or ())
    return {part for name, _, part in named if name == "members"}


def _without_none(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


def _timestamp(moment: int) -> str:
    return from_micros(moment).replace(tzinfo=None).isoformat() + "Z"
