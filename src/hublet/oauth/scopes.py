"""Scopes of OAuth: parsed from a request, mapped to the grants of a token, and stored with a
permission.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from hublet.core.database import Row
from hublet.oauth.errors import invalid_scope, invalid_target
from hublet.oauth.records import COMMAND_LINE_CLIENT_ID, AppKind, OAuthApp, Permission
from hublet.tokens.records import ALL_SCOPES, Grants, Scope, ScopedGrant, with_included

# RFC 6749, 3.3.
_SCOPE_TEXT = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*")
# Refresh tokens are always issued, so this scope of OpenID Connect is ignored.
_OFFLINE_ACCESS = "offline_access"
# Scopes of an app that nobody registered, when its request names none.
_DEFAULT_SCOPES = frozenset({Scope.openid, Scope.profile})
_REGISTERED_KINDS = frozenset({AppKind.registered, AppKind.first_party})
# Scopes about the person, or about things without an owner: these hold everywhere.
PERSONAL_SCOPES = frozenset(
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


def scopes_requested_by(
    app: OAuthApp, text: str | None, *, for_resource: bool = False
) -> frozenset[Scope]:
    """Return the scopes that an app requests; if it names none, all that it was registered with.

    An app that registered itself may request nearly everything, but must name it. Where it asks for
    one resource, what it registered with is no limit: it did so before a challenge of the resource
    asked for more (RFC 6750, 3.1), and the person is asked in any case.
    """
    default = app.scopes if app.kind in _REGISTERED_KINDS else app.scopes & _DEFAULT_SCOPES
    may_ask_more = for_resource and app.kind is AppKind.dynamic
    return requested_scopes(
        text, allowed=ALL_SCOPES if may_ask_more else app.scopes, default=default
    )


def requested_scopes(
    text: str | None, *, allowed: frozenset[Scope], default: frozenset[Scope] | None = None
) -> frozenset[Scope]:
    """Return the requested scopes; if none is named, the default, else all that is allowed.

    A scope that an allowed one includes may be requested alone: that is less, never more.
    """
    if text and _SCOPE_TEXT.fullmatch(text) is None:
        raise invalid_scope("scope must be names of scopes with one space between two.")
    names = set(text.split(" ") if text else ()) - {_OFFLINE_ACCESS}
    if not names:
        return allowed if default is None else default
    if not names <= ALL_SCOPES:
        raise invalid_scope("scope has a name that is no scope of this hub.")
    scopes = frozenset(map(Scope, names))
    if missing := scopes - with_included(allowed):
        raise invalid_scope(f"scope: {format_scopes(missing)} goes beyond what the app may have.")
    return scopes


def format_scopes(scopes: Iterable[Scope]) -> str:
    """Return scopes as responses list them, in the order of interface 5.3."""
    granted = frozenset(scopes)
    return " ".join(scope for scope in Scope if scope in granted)


def reaches_inbox(client_id: str, scopes: frozenset[Scope]) -> bool:
    """Tell whether a token reaches the inbox: only the command line's does, with all scopes."""
    return client_id == COMMAND_LINE_CLIENT_ID and scopes == ALL_SCOPES


def grants_of(
    scopes: frozenset[Scope],
    *,
    user: tuple[str, str],
    organizations: Mapping[str, str],
    inbox: bool = False,
) -> Grants:
    """Return the grants of a token: for the person (id and name), and in these organizations.

    Interface 5.3: what is owned is reached on the user's own account and on the selected
    organizations (names by id) only.
    """
    owned = scopes - PERSONAL_SCOPES
    own = ScopedGrant(entity_id=user[0], entity_type="user", entity_name=user[1], scopes=owned)
    # A selected organization is named even where nothing of it is reached: userinfo shows it.
    selected = tuple(_in_organization(*each, owned) for each in sorted(organizations.items()))
    return Grants(
        everywhere=scopes & PERSONAL_SCOPES,
        scoped=(own, *selected) if owned else selected,
        inbox=inbox,
    )


def confined_grants_of(scopes: frozenset[Scope], *, organization: tuple[str, str]) -> Grants:
    """Return the grants of an exchanged token: only in its organization (id and name).

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
        scopes=scopes_from_json(row["scopes"]),
        organization_ids=frozenset(json.loads(row["organization_ids"])),
        resource=row["resource"],
    )


def scopes_from_json(text: str) -> frozenset[Scope]:
    """Leave out scopes that this version does not know, as after a downgrade."""
    return frozenset(Scope(name) for name in json.loads(text) if name in ALL_SCOPES)


def to_json_list(values: Iterable[str]) -> str:
    return json.dumps(sorted(values))


def resource_of(targets: Sequence[str], *, base_url: str, name: str = "resource") -> str | None:
    """Return the paths below the hub that a token is asked for; None: the whole hub (RFC 8707)."""
    paths = set[str]()
    for target in targets:
        address = target.partition("?")[0]
        # Tokens are for this hub, and for nobody else.
        if (address != base_url and not address.startswith(f"{base_url}/")) or len(
            target.split()
        ) > 1:
            raise invalid_target(f"{name} must be an address of this hub.")
        paths.add(address.removeprefix(base_url).rstrip("/"))
    return None if "" in paths else " ".join(sorted(paths)) or None
