"""How a permission becomes what a token may do, and how it is stored."""

import json
from collections.abc import Iterable, Mapping

from hublet.core.database import Row
from hublet.oauth.records import COMMAND_LINE_CLIENT_ID, Permission
from hublet.tokens.records import ALL_SCOPES, Grants, Scope, ScopedGrant, with_included

# About the person, or about what no owner has: these hold everywhere.
PERSONAL = frozenset(
    {
        Scope.openid,
        Scope.profile,
        Scope.email,
        Scope.read_memberships,
        Scope.gated_repos,
        Scope.write_discussions,
        Scope.inference_api,
    }
)


def reaches_inbox(client_id: str, scopes: frozenset[Scope]) -> bool:
    """No scope does: only the command line, when it is given everything."""
    return client_id == COMMAND_LINE_CLIENT_ID and scopes == ALL_SCOPES


def grants_of(
    scopes: frozenset[Scope],
    *,
    user: tuple[str, str],
    organizations: Mapping[str, str],
    inbox: bool = False,
) -> Grants:
    """Return what a token may do: for the person (id and name), and in these organizations.

    Interface 5.3: what is owned is reached on the user's own account and on the selected
    organizations (names by id) only.
    """
    owned = scopes - PERSONAL
    own = ScopedGrant(entity_id=user[0], entity_type="user", entity_name=user[1], scopes=owned)
    # A selected organization is named even where nothing of it is reached: userinfo shows it.
    selected = tuple(_in_organization(*each, owned) for each in sorted(organizations.items()))
    return Grants(
        everywhere=scopes & PERSONAL, scoped=(own, *selected) if owned else selected, inbox=inbox
    )


def confined_grants_of(scopes: frozenset[Scope], *, organization: tuple[str, str]) -> Grants:
    """Return what an exchanged token may do: nothing but in its organization (id and name).

    Interface 5.4, rule 3: public gated repositories that the user was granted are read anywhere.
    """
    reads_gated = with_included(scopes) & {Scope.read_repos, Scope.gated_repos}
    return Grants(
        everywhere=frozenset({Scope.gated_repos}) if reads_gated else frozenset(),
        scoped=(_in_organization(*organization, scopes),),
    )


def _in_organization(entity_id: str, name: str, scopes: frozenset[Scope]) -> ScopedGrant:
    return ScopedGrant(entity_id=entity_id, entity_type="org", entity_name=name, scopes=scopes)


def permission_record(row: Row) -> Permission:
    return Permission(
        user_id=row["user_id"],
        app_id=row["app_id"],
        scopes=scopes_from(row["scopes"]),
        organization_ids=frozenset(json.loads(row["organization_ids"])),
    )


def scopes_from(text: str) -> frozenset[Scope]:
    """Leave out scopes that this version does not know, as after a downgrade."""
    return frozenset(Scope(name) for name in json.loads(text) if name in ALL_SCOPES)


def as_text(values: Iterable[str]) -> str:
    return json.dumps(sorted(values))
