"""HTTP for the service accounts of an organization, and for credentials that were given for it."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import MISSING

from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations import service_accounts, store
from hublet.accounts.organizations.schemas import CreateServiceAccount
from hublet.accounts.records import Actor, Organization
from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.errors import HubError, InvalidRequest
from hublet.core.pages import PageRouter
from hublet.core.paging import read_cursor, write_cursor
from hublet.login.auth import FormFields
from hublet.tokens import service_accounts as account_tokens
from hublet.tokens import store as tokens
from hublet.tokens.records import Scope
from hublet.tokens.schemas import CreateToken
from hublet.web.auth import FreshVisit, PageVisit, SignedInVisit
from hublet.web.organizations.pages import (
    SETTINGS,
    Show,
    apply_form,
    open_settings,
    render_settings,
    role_in,
)
from hublet.web.pages import next_page_url, read_as

router = PageRouter()

_PAGE = "service-accounts"
_ACCOUNTS = f"{SETTINGS}/{_PAGE}"
_ACCOUNT = f"{_ACCOUNTS}/{{account_id}}"
_TOKENS = f"{SETTINGS}/tokens"
_PAGE_SIZE = 100
# After how many days a new token ends; 0: never.
LIFETIMES = (7, 30, 90, 365, 0)


async def _get_owner(conn: Reader, visit: PageVisit, found: Organization) -> Organization:
    """Return the organization if its plan has service accounts."""
    return await service_accounts.get_organization(conn, found.name, user_id=visit.person.user_id)


@router.get(_ACCOUNTS)
async def get_service_accounts_page(visit: SignedInVisit, organization: str) -> Response:
    return await _show_accounts(visit, organization)


@router.post(_ACCOUNTS)
async def create_service_account(
    visit: FreshVisit, organization: str, form: FormFields
) -> Response:
    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        owner = await _get_owner(conn, visit, found)
        new = read_as(
            CreateServiceAccount,
            name=form.get("name", "").strip(),
            role=form.get("role", ""),
            fullname=form.get("fullname", "").strip() or MISSING,
        )
        fullname = None if new.fullname is MISSING else new.fullname
        await service_accounts.create(
            conn, actor, owner, new.name, role=new.role, fullname=fullname
        )

    return await apply_form(
        visit, organization, form, change,
        show=_show_accounts, page=_PAGE, toast="The service account is there. Make a token for it.",
    )  # fmt: skip


async def _show_accounts(
    visit: PageVisit,
    name: str,
    *,
    typed: Mapping[str, str] | None = None,
    problem: HubError | None = None,
) -> Response:
    async with visit.database.read() as conn:
        head = await open_settings(conn, visit, name, _PAGE)
        accounts = await store.list_service_accounts(
            conn, organization_id=head.organization.id, limit=_PAGE_SIZE
        )
        uses = await tokens.last_uses_of(conn, [each.user.id for each in accounts])
    return await render_settings(
        visit, head, accounts=accounts, uses=uses, typed=typed, problem=problem
    )


@router.get(_ACCOUNT)
async def get_service_account_page(
    visit: SignedInVisit, organization: str, account_id: str
) -> Response:
    return await _show_account(account_id)(visit, organization)


@router.post(f"{_ACCOUNT}/role")
async def set_service_account_role(
    visit: FreshVisit, organization: str, account_id: str, form: FormFields
) -> Response:
    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        account = await service_accounts.get(conn, found, account_id)
        await organizations.set_member(conn, actor, found, account.user, role_in(form))

    return await apply_form(
        visit, organization, form, change,
        show=_show_account(account_id), page=f"{_PAGE}/{account_id}", toast="The role is saved.",
    )  # fmt: skip


@router.post(f"{_ACCOUNT}/delete")
async def delete_service_account(
    visit: FreshVisit, organization: str, account_id: str, form: FormFields
) -> Response:
    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        owner = await _get_owner(conn, visit, found)
        account = await service_accounts.get(conn, owner, account_id)
        await service_accounts.delete(conn, actor, owner, account)

    return await apply_form(
        visit, organization, form, change,
        show=_show_account(account_id), page=_PAGE, toast="The service account is deleted.",
    )  # fmt: skip


@router.post(f"{_ACCOUNT}/tokens")
async def create_service_account_token(
    visit: FreshVisit, organization: str, account_id: str, form: FormFields
) -> Response:
    """Make a token, and show its value this once; it is in no address and not stored."""
    values: list[str] = []

    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        owner = await _get_owner(conn, visit, found)
        account = await service_accounts.get(conn, owner, account_id)
        _, value = await account_tokens.issue(conn, actor, owner, account.user, _new_token(form))
        values.append(value)

    response = await apply_form(
        visit, organization, form, change,
        show=_show_account(account_id), page=f"{_PAGE}/{account_id}", toast="",
    )  # fmt: skip
    if not values:
        return response
    return await _show_account(account_id, new_token=values[0])(visit, organization)


def _new_token(form: FormFields) -> CreateToken:
    values: dict[str, Any] = {"name": form.get("name", "").strip(), "role": form.get("role", "")}
    if scopes := form.getlist("scopes"):
        values["scopes"] = scopes
    if (ends := _end_of(form.get("days", "0"))) is not None:
        values["expiresAt"] = ends.isoformat()
    return read_as(CreateToken, **values)


def _end_of(days: str) -> datetime | None:
    if days not in {str(each) for each in LIFETIMES}:
        raise InvalidRequest("days must be one of those in the list.")
    return now() + timedelta(days=int(days)) if int(days) else None


@router.post(f"{_ACCOUNT}/tokens/{{token_id}}/revoke")
async def revoke_service_account_token(
    visit: FreshVisit, organization: str, account_id: str, token_id: str, form: FormFields
) -> Response:
    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        owner = await _get_owner(conn, visit, found)
        account = await service_accounts.get(conn, owner, account_id)
        await account_tokens.revoke(conn, actor, owner, account.user, token_id)

    return await apply_form(
        visit, organization, form, change,
        show=_show_account(account_id), page=f"{_PAGE}/{account_id}", toast="The token is revoked.",
    )  # fmt: skip


def _show_account(account_id: str, *, new_token: str | None = None) -> Show:
    async def show(
        visit: PageVisit,
        name: str,
        *,
        typed: Mapping[str, str] | None = None,
        problem: HubError | None = None,
    ) -> Response:
        async with visit.database.read() as conn:
            head = await open_settings(conn, visit, name, _PAGE)
            account = await service_accounts.get(conn, head.organization, account_id)
            found = await tokens.list_of(conn, user_id=account.user.id)
        return await render_settings(
            visit,
            head,
            template="service_account",
            account=account,
            tokens=found,
            new_token=new_token,
            scopes=tuple(Scope),
            lifetimes=LIFETIMES,
            typed=typed,
            problem=problem,
        )

    return show


@router.get(_TOKENS)
async def get_organization_tokens_page(
    visit: SignedInVisit, organization: str, cursor: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Show the credentials that were given for the organization."""
    return await _show_tokens(visit, organization, cursor=cursor)


@router.post(f"{_TOKENS}/{{token_id}}/revoke")
async def revoke_organization_token(
    visit: FreshVisit, organization: str, token_id: str, form: FormFields
) -> Response:
    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        await account_tokens.cut_off(conn, actor, found, token_id)

    return await apply_form(
        visit, organization, form, change,
        show=_show_tokens, page="tokens", toast=f"The token does not reach {organization} any more.",
    )  # fmt: skip


async def _show_tokens(
    visit: PageVisit,
    name: str,
    *,
    cursor: str = "",
    typed: Mapping[str, str] | None = None,
    problem: HubError | None = None,
) -> Response:
    async with visit.database.read() as conn:
        head = await open_settings(conn, visit, name, "tokens")
        found = await tokens.list_for_organization(
            conn,
            head.organization.id,
            after=read_cursor(cursor) if cursor else "",
            limit=_PAGE_SIZE + 1,
        )
    tokens_of_page = found[:_PAGE_SIZE]
    more = len(found) > len(tokens_of_page)
    return await render_settings(
        visit,
        head,
        tokens=tokens_of_page,
        next_url=next_page_url(visit, write_cursor(tokens_of_page[-1].token.id)) if more else None,
        typed=typed,
        problem=problem,
    )
