"""Service accounts: accounts of an organization that belong to a program."""

from hublet.accounts.errors import PlanNeeded, ServiceAccountNotFound
from hublet.accounts.names import check_fullname, check_name
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations import store
from hublet.accounts.records import (
    Actor,
    Member,
    Organization,
    OrganizationPlan,
    Role,
    User,
    UserType,
)
from hublet.accounts.users import service as accounts
from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish
from hublet.events import ServiceAccountCreated


async def get_organization(conn: Reader, name: str, *, user_id: str) -> Organization:
    """Return the organization when the user administers it, and it has the plan."""
    organization = await organizations.get_administered(conn, name, user_id=user_id)
    if not organization.plan.has_service_accounts:
        raise PlanNeeded("Service accounts", OrganizationPlan.enterprise, organization.name)
    return organization


async def get(conn: Reader, organization: Organization, account_id: str) -> Member:
    account = await store.find_service_account(conn, account_id, organization_id=organization.id)
    if account is None:
        raise ServiceAccountNotFound(account_id)
    return account


async def create(
    conn: Connection,
    actor: Actor,
    organization: Organization,
    name: str,
    *,
    role: Role,
    fullname: str | None = None,
) -> Member:
    """Create an account without a password: a program authenticates with its tokens."""
    check_name(name)
    check_fullname(fullname or name)
    user = User(
        id=new_object_id(),
        name=name,
        fullname=fullname or name,
        type=UserType.service,
        organization_id=organization.id,
        created_at=now(),
    )
    await accounts.add_user(conn, user, password_hash=None)
    await audit.record(
        conn, organization.id, actor, "service-account.create", target=name, details={"role": role}
    )
    await publish(
        conn,
        ServiceAccountCreated(organization_id=organization.id, user_id=user.id, name=name),
    )
    await organizations.set_member(conn, actor, organization, user, role)
    return Member(user=user, role=role)


async def delete(
    conn: Connection, actor: Actor, organization: Organization, account: Member
) -> None:
    """Disable the account for good; its name stays taken, so that logs stay readable."""
    await accounts.disable_user(conn, account.user)
    await audit.record(
        conn, organization.id, actor, "service-account.delete", target=account.user.name
    )
