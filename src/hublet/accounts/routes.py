"""Routers of accounts, in the order in which the application looks them up."""

from hublet.accounts import administration_routes, avatar_routes
from hublet.accounts.organizations import audit_routes, security_routes
from hublet.accounts.organizations import routes as organizations
from hublet.accounts.resource_groups import routes as resource_groups
from hublet.accounts.settings import routes as settings
from hublet.accounts.users import routes as users
from hublet.core.http import Router

ROUTERS: tuple[Router, ...] = (
    users.whoami_router,
    users.router,
    avatar_routes.router,
    settings.router,
    settings.emails_router,
    settings.ssh_keys_router,
    organizations.router,
    organizations.invitations_router,
    audit_routes.audit_router,
    security_routes.networks_router,
    security_routes.domains_router,
    security_routes.join_router,
    resource_groups.router,
    resource_groups.members_router,
    organizations.service_accounts_router,
    administration_routes.users_router,
    administration_routes.invitations_router,
    administration_routes.organizations_router,
    administration_routes.tasks_router,
)
