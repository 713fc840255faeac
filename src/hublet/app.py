"""Builds the application from the features: the only module that knows all of them."""

from functools import partial

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp

import hublet.accounts.audit.reactions
import hublet.repos.reactions
import hublet.tokens.reactions  # noqa: F401 - importing registers what a worker runs
from hublet.accounts.administration.organizations.routes import router as administered_organizations
from hublet.accounts.administration.tasks.routes import router as administered_tasks
from hublet.accounts.administration.users.routes import router as administered_users
from hublet.accounts.audit.routes import router as audit_log
from hublet.accounts.organizations.routes import router as organizations
from hublet.accounts.pictures.routes import router as pictures
from hublet.accounts.resource_groups.members.routes import router as resource_group_members
from hublet.accounts.resource_groups.routes import router as resource_groups
from hublet.accounts.routes import router as accounts
from hublet.accounts.service_accounts.routes import router as service_accounts
from hublet.accounts.settings.emails.routes import router as emails
from hublet.accounts.settings.routes import router as own_settings
from hublet.accounts.settings.ssh_keys.routes import router as ssh_keys
from hublet.accounts.users.routes import router as users
from hublet.core.database import Database
from hublet.core.http import Edge, install_error_handlers
from hublet.core.http.hot import hot_handlers
from hublet.core.http.operations import router as operations
from hublet.core.http.test_mode import router as test_mode
from hublet.core.limits import Limiter
from hublet.core.logs import AccessLog
from hublet.core.metrics import Metrics
from hublet.gaps import router as gaps
from hublet.pages.routes import router as pages
from hublet.repos.routes import router as repos
from hublet.tokens.administration.routes import router as administered_tokens
from hublet.tokens.auth import known_caller
from hublet.tokens.cache import CallerCache
from hublet.tokens.routes import router as tokens
from hublet.tokens.service_accounts.routes import router as service_account_tokens

# In the order they are looked up: what the hub lacks comes last.
FEATURES: tuple[APIRouter, ...] = (
    operations,
    accounts,
    users,
    pictures,
    own_settings,
    emails,
    ssh_keys,
    organizations,
    audit_log,
    resource_groups,
    resource_group_members,
    service_accounts,
    administered_users,
    administered_organizations,
    administered_tasks,
    tokens,
    service_account_tokens,
    administered_tokens,
    repos,
    pages,
    gaps,
)


def create_application(database: Database) -> FastAPI:
    """Build the application that the edge wraps; its state is what routes reach for."""
    settings = database.hub.settings
    app = FastAPI(
        title="Hublet",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        # The public client sends bodies without a content type; see client contract 0.2.
        strict_content_type=False,
    )
    install_error_handlers(app)
    if settings.server.test_mode:
        app.include_router(test_mode)
    for feature in FEATURES:
        app.include_router(feature)
    app.state.database = database
    app.state.settings = settings
    app.state.callers = CallerCache(database)
    app.state.limiter = Limiter(quiet=settings.server.test_mode)
    app.state.metrics = Metrics()
    return app


def with_edge(app: FastAPI, *, access_log: AccessLog | None = None) -> ASGIApp:
    return Edge(
        app,
        settings=app.state.settings,
        hot=hot_handlers(app.routes),
        known_caller=partial(known_caller, app.state.callers),
        access_log=access_log,
        metrics=app.state.metrics,
    )
