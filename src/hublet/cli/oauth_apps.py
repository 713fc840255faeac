"""Commands for OAuth apps, and for the trusted publishers of a repository."""

from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.local_command import add_change_command, add_list_command
from hublet.cli.local_hub import read_all_pages
from hublet.cli.options import Yes, new_group, parse_scopes
from hublet.cli.output import CommandResult, Table, format_cell

if TYPE_CHECKING:
    from hublet.core.database import Connection, Reader
    from hublet.oauth.apps.records import ManagedApp
    from hublet.oauth.apps.schemas import CreateApp
    from hublet.repos.records import Repo

_ClientId = Annotated[str, typer.Argument(metavar="CLIENT_ID", help="The app's client id.")]


def register(app: typer.Typer) -> None:
    apps = new_group("Create, list and delete apps, and allow them the token exchange.")
    add_list_command(apps, "list", list_apps, example="hublet oauth app list --json")
    add_change_command(
        apps, "show", show, example="hublet oauth app show 26be6b09-91c5-47da-9861-d2d2bb7a7e36"
    )
    add_change_command(
        apps, "create", create,
        example="hublet oauth app create Engine --org acme --redirect-uri http://localhost/cb",
    )  # fmt: skip
    add_change_command(apps, "delete", delete, example="hublet oauth app delete 9f2c…")
    add_change_command(
        apps, "allow-exchange", allow_exchange, example="hublet oauth app allow-exchange 9f2c…"
    )
    oauth = new_group("What apps may do here.")
    oauth.add_typer(apps, name="app")
    publishers = new_group("Let workflows of CI services write a repository without a token.")
    add_list_command(
        publishers, "list", list_publishers, example="hublet oauth publisher list ada/engine"
    )
    add_change_command(
        publishers, "add", add_publisher,
        example="hublet oauth publisher add ada/engine github repository=acme/engine branch=main",
    )  # fmt: skip
    add_change_command(
        publishers, "remove", remove_publisher,
        example="hublet oauth publisher remove ada/engine 6afd6cbe6d61a1db3bacc69f",
    )  # fmt: skip
    oauth.add_typer(publishers, name="publisher")
    app.add_typer(oauth, name="oauth")


async def list_apps(conn: "Reader") -> Table:
    """List all apps, oldest first."""
    from hublet.oauth.apps import store

    apps = await read_all_pages(
        lambda after: store.list_all(conn, after=after), lambda each: each.app.id
    )
    return Table(
        rows=[_row(each) for each in apps],
        columns={
            "client id": "clientId",
            "name": "name",
            "kind": "kind",
            "owner": "owner",
            "organization": "organization",
            "exchange": "tokenExchange",
            "created": "createdAt",
        },
        name="clientId",
        empty="There are no apps yet.",
    )


async def show(conn: "Connection", client_id: _ClientId) -> CommandResult:
    """Show one app."""
    from hublet.oauth.apps import service

    row = _row(await service.get_any(conn, client_id))
    return CommandResult(
        data=row, text="\n".join(f"{name}: {format_cell(row[name])}" for name in row)
    )


async def create(
    conn: "Connection",
    name: Annotated[str, typer.Argument(metavar="NAME", help="What people see it called.")],
    *,
    owner: Annotated[
        str | None, typer.Option(metavar="USER", help="The user who manages it.")
    ] = None,
    org: Annotated[
        str | None,
        typer.Option(metavar="ORG", help="Bind it to an organization, whose admins manage it."),
    ] = None,
    redirect_uri: Annotated[
        list[str] | None, typer.Option(metavar="URI", help="Where it may send people to; repeat.")
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(metavar="SCOPE", help="What it may ask for; repeat; else openid, profile."),
    ] = None,
    dynamic_query: Annotated[
        bool, typer.Option("--dynamic-query", help="Let its redirect URIs carry any query.")
    ] = False,
    secret: Annotated[
        bool, typer.Option("--secret", help="Give it a secret, printed alone, this once.")
    ] = False,
) -> CommandResult:
    """Register an app for a user or an organization. Its client id is printed."""
    from hublet.accounts.organizations import service as organizations
    from hublet.accounts.records import OPERATOR
    from hublet.accounts.users.service import get_user
    from hublet.oauth.apps import service
    from hublet.oauth.apps.client_secrets import issue

    if owner is None and org is None:
        raise typer.BadParameter("Give --owner, --org, or both.")
    request = _read_request(
        name, redirect_uris=redirect_uri or [], scopes=scope, dynamic_query=dynamic_query
    )
    user = None if owner is None else await get_user(conn, owner)
    organization = None if org is None else await organizations.get(conn, org)
    managed = await service.register(
        conn, OPERATOR, request, owner_id=user.id if user else None, bound=organization
    )
    value = (await issue(conn, managed.app.id))[1] if secret else None
    row = _row(await service.get_any(conn, managed.app.client_id))
    return CommandResult(
        data=row if value is None else row | {"secret": value},
        text=value or managed.app.client_id,
        message=_creation_message(managed, has_secret=secret),
    )


async def delete(conn: "Connection", client_id: _ClientId, *, yes: Yes = False) -> CommandResult:
    """Delete an app; all access that people gave it ends."""
    from hublet.accounts.records import OPERATOR
    from hublet.cli.remote_command import confirm
    from hublet.oauth.apps import administration

    # Asked before the first statement, so that no lock is held meanwhile.
    confirm(f"Delete the app {format_cell(client_id)}, and with it all access to it?", yes=yes)
    managed = await administration.delete_app(conn, OPERATOR, client_id)
    return CommandResult(
        data={"clientId": client_id, "deleted": True},
        message=f"Deleted the app {managed.app.name}. All access to it has ended.",
    )


async def allow_exchange(
    conn: "Connection",
    client_id: _ClientId,
    off: Annotated[bool, typer.Option("--off", help="Take it back.")] = False,
) -> CommandResult:
    """Let an app of an Enterprise organization get tokens for its members (RFC 8693)."""
    from hublet.accounts.records import OPERATOR
    from hublet.oauth.apps import administration

    managed = await administration.set_token_exchange(conn, OPERATOR, client_id, allowed=not off)
    may = f"may exchange e-mail addresses of {managed.organization} for tokens"
    return CommandResult(
        data=_row(managed),
        message=f"{managed.app.name} {'may no longer exchange tokens' if off else may}.",
    )


def _read_request(
    name: str, *, redirect_uris: list[str], scopes: list[str] | None, dynamic_query: bool
) -> "CreateApp":
    from hublet.oauth.apps.records import clean_name
    from hublet.oauth.apps.schemas import MAX_REDIRECT_URIS, CreateApp
    from hublet.tokens.records import Scope

    requested = [Scope.openid, Scope.profile] if scopes is None else parse_scopes(scopes)
    if len(redirect_uris) > MAX_REDIRECT_URIS:
        raise typer.BadParameter(
            f"An app has at most {MAX_REDIRECT_URIS} redirect URIs.", param_hint="--redirect-uri"
        )
    try:
        clean = clean_name(name)
    except ValueError as error:
        raise typer.BadParameter(f"{error}.", param_hint="NAME") from None
    return CreateApp(
        name=clean, redirectUris=redirect_uris, scopes=requested, dynamicQuery=dynamic_query
    )


def _creation_message(managed: "ManagedApp", *, has_secret: bool) -> str:
    app = managed.app
    created = f"Created the app {app.name}"
    if has_secret:
        return f"{created} with the client id {app.client_id}. Its secret is shown this once."
    return f"{created}. It is public: it has no secret."


def _row(managed: "ManagedApp") -> dict[str, object]:
    app = managed.app
    return {
        "clientId": app.client_id,
        "name": app.name,
        "kind": app.kind,
        "owner": managed.owner,
        "organization": managed.organization,
        "redirectUris": list(app.redirect_uris),
        "scopes": sorted(app.scopes),
        "isPublic": not app.confidential,
        "tokenExchange": app.token_exchange,
        "tokenSeconds": app.token_seconds,
        "createdAt": app.created_at,
    }


_Repo = Annotated[
    str, typer.Argument(metavar="REPO", help="owner/name, or datasets/owner/name and the like.")
]


async def list_publishers(conn: "Reader", repo: _Repo) -> Table:
    """List the workflows that a repository trusts, oldest first."""
    from hublet.oauth.publishers import service

    found = await service.list_of(conn, await _get_repo(conn, repo))
    return Table(
        rows=[
            {"id": each.id, "provider": each.provider, "publisher": each.summary}
            | {"claims": dict(each.claims), "createdBy": each.creator_name}
            | {"lastUsedAt": each.last_used_at}
            for each in found
        ],
        columns={"id": "id", "publisher": "publisher", "last used": "lastUsedAt"},
        name="id",
        empty=f"{repo} trusts no workflow.",
    )


async def add_publisher(
    conn: "Connection",
    repo: _Repo,
    provider: Annotated[
        str,
        typer.Argument(metavar="PROVIDER", help="github, gitlab, circleci, bitbucket or custom."),
    ],
    claims: Annotated[
        list[str],
        typer.Argument(
            metavar="CLAIM=VALUE", help="What an ID token must say, such as branch=main."
        ),
    ],
    *,
    issuer: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Who issues the ID tokens, if not the default."),
    ] = None,
) -> CommandResult:
    """Let a repository trust a workflow. The id of the publisher is printed."""
    from hublet.accounts.records import OPERATOR
    from hublet.oauth.publishers import service
    from hublet.oauth.publishers.records import DEFAULT_ISSUERS, Provider, PublisherDraft
    from hublet.oauth.schemas import TrustedPublisher

    if provider not in set(Provider):
        raise typer.BadParameter(f"{provider} is no provider.", param_hint="PROVIDER")
    kind, pairs = Provider(provider), [each.partition("=") for each in claims]
    draft = PublisherDraft(
        provider=kind,
        issuer=issuer or DEFAULT_ISSUERS.get(kind, ""),
        claims={name: value for name, _, value in pairs},
        pins={},
    )
    added = await service.add(conn, OPERATOR, await _get_repo(conn, repo), draft)
    return CommandResult(
        data=TrustedPublisher.of(added).model_dump(mode="json"),
        text=added.id,
        message=f"Runs of {added.summary} may write {repo}.",
    )


async def remove_publisher(
    conn: "Connection",
    repo: _Repo,
    publisher_id: Annotated[str, typer.Argument(metavar="ID", help="The id of the publisher.")],
) -> CommandResult:
    """Remove a publisher; tokens that it has end at once."""
    from hublet.accounts.records import OPERATOR
    from hublet.oauth.publishers import service

    await service.remove(conn, OPERATOR, await _get_repo(conn, repo), publisher_id)
    return CommandResult(
        data={"id": publisher_id, "removed": True},
        message=f"Removed the publisher. Its runs cannot write {repo} any more.",
    )


async def _get_repo(conn: "Reader", text: str) -> "Repo":
    from hublet.core.errors import InvalidRequest
    from hublet.oauth.errors import OAuthError
    from hublet.oauth.publishers.service import parse_resource
    from hublet.repos import store
    from hublet.repos.errors import RepoNotFound

    try:
        address = parse_resource(text)
    except OAuthError:
        raise InvalidRequest("REPO must look like owner/name or datasets/owner/name.") from None
    repo = await store.find_by_name(conn, address)
    if repo is None:
        raise RepoNotFound
    return repo
