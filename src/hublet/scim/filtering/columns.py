"""Which attribute is kept in which column."""

from enum import Enum, auto

from hublet.core.light_dataclasses import dataclass


class Kind(Enum):
    # Kept as a key: case does not count.
    text = auto()
    exact = auto()
    boolean = auto()
    time = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    sql: str
    kind: Kind = Kind.text
    # For an attribute with many values: the rows that hold them.
    rows: "Rows | None" = None
    may_be_null: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    sql: str
    # The column that says whose they are.
    owner: str


_EMAILS = Rows(sql="scim_emails e", owner="e.scim_user_id")
_MEMBERS = Rows(sql="scim_members m JOIN scim_users u ON u.id = m.scim_user_id", owner="m.group_id")

_SHARED = {
    "id": Column(sql="s.id", kind=Kind.exact),
    "externalid": Column(sql="s.external_id", kind=Kind.exact, may_be_null=True),
    "meta.created": Column(sql="s.created_at", kind=Kind.time),
    "meta.lastmodified": Column(sql="s.updated_at", kind=Kind.time),
}

USERS = _SHARED | {
    "username": Column(sql="s.user_name_key"),
    "name.givenname": Column(sql="s.given_name_key", may_be_null=True),
    "name.familyname": Column(sql="s.family_name_key", may_be_null=True),
    "active": Column(sql="s.active", kind=Kind.boolean),
    "emails": Column(sql="e.address_key", rows=_EMAILS),
    "emails.value": Column(sql="e.address_key", rows=_EMAILS),
    "emails.type": Column(sql="lower(e.type)", rows=_EMAILS, may_be_null=True),
    "emails.primary": Column(sql="e.is_primary", kind=Kind.boolean, rows=_EMAILS, may_be_null=True),
}

GROUPS = _SHARED | {
    "displayname": Column(sql="s.display_name_key"),
    "members": Column(sql="m.scim_user_id", kind=Kind.exact, rows=_MEMBERS),
    "members.value": Column(sql="m.scim_user_id", kind=Kind.exact, rows=_MEMBERS),
    "members.display": Column(sql="u.user_name_key", rows=_MEMBERS),
}

# What stands for an attribute with many values when a list is sorted by it.
_PRIMARY_EMAIL = (
    "(SELECT e.address_key FROM scim_emails e WHERE e.scim_user_id = s.id "
    "ORDER BY COALESCE(e.is_primary, FALSE) DESC, e.position LIMIT 1)"
)
SORTED_BY = {
    "emails": Column(sql=_PRIMARY_EMAIL, may_be_null=True),
    "emails.value": Column(sql=_PRIMARY_EMAIL, may_be_null=True),
}
