"""HTTP for the service accounts of an organization; for their tokens see hublet.tokens."""

from fastapi import Request
from pydantic import MISSING

from hublet.accounts.service_accounts import service, store
from hublet.accounts.service_accounts.schemas import CreateServiceAccount, ServiceAccount
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import LINKED, AskedPage
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner, actor_of

router = Router(
    prefix="/api/organizations/{organization}/service-accounts", tags=["service-accounts"]
)


@router.get("", responses=LINKED)
async def list_service_accounts(
    conn: ReadConn, caller: AccountOwner, organization: str, page: AskedPage
) -> list[ServiceAccount]:
    """List the service accounts of an organization, page by page."""
    found = await service.get_organization(conn, organization, user_id=caller.user_id)
    accounts = await store.list_of(
        conn, organization_id=found.id, after=page.after, limit=page.reach
    )
    shown = page.cut(accounts, position=lambda account: account.user.id)
    return [ServiceAccount.of(account) for account in shown]


@router.post("", responses={409: {"description": "The name is taken."}})
async def create_service_account(
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    organization: str,
    body: CreateServiceAccount,
) -> ServiceAccount:
    """Create a service account, a member of the organization with this role."""
    found = await service.get_organization(conn, organization, user_id=caller.user_id)
    account = await service.create(
        conn,
        actor_of(request, caller),
        found,
        body.name,
        role=body.role,
        fullname=None if body.fullname is MISSING else body.fullname,
    )
    return ServiceAccount.of(account)


@router.get("/{account_id}")
async def get_service_account(
    conn: ReadConn, caller: AccountOwner, organization: str, account_id: str
) -> ServiceAccount:
    """Get one service account of an organization."""
    found = await service.get_organization(conn, organization, user_id=caller.user_id)
    return ServiceAccount.of(await service.get(conn, found, account_id))


@router.delete("/{account_id}")
async def delete_service_account(
    request: Request, conn: Conn, caller: AccountOwner, organization: str, account_id: str
) -> Done:
    """Delete a service account; its tokens fail within a second, its name stays taken."""
    found = await service.get_organization(conn, organization, user_id=caller.user_id)
    account = await service.get(conn, found, account_id)
    await service.delete(conn, actor_of(request, caller), found, account)
    return Done()
