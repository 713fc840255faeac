"""Builds the application from the features: the only module that knows all of them."""

from functools import partial

from fastapi import FastAPI
from starlette.types import ASGIApp

import hublet.reactions  # noqa: F401 - importing registers what reacts to facts
from hublet.accounts.administration_routes import organizations_router as administered_organizations
from hublet.accounts.administration_routes import tasks_router as administered_tasks
from hublet.accounts.administration_routes import users_router as administered_users
from hublet.accounts.avatar_routes import router as pictures
from hublet.accounts.organizations.routes import audit_router as audit_log
from hublet.accounts.organizations.routes import router as organizations
from hublet.accounts.organizations.routes import service_accounts_router as service_accounts
from hublet.accounts.resource_groups.routes import members_router as resource_group_members
from hublet.accounts.resource_groups.routes import router as resource_groups
from hublet.accounts.settings.routes import emails_router as emails
from hublet.accounts.settings.routes import router as own_settings
from hublet.accounts.settings.routes import ssh_keys_router as ssh_keys
from hublet.accounts.users.routes import router as users
from hublet.accounts.users.routes import whoami_router as accounts
from hublet.community.blogs.routes import comments_router as blog_comments
from hublet.community.blogs.routes import router as blogs
from hublet.community.discussions.routes import pull_requests_router as pull_requests
from hublet.community.discussions.routes import router as discussions
from hublet.community.papers.routes import comments_router as paper_comments
from hublet.community.papers.routes import router as papers
from hublet.community.posts.routes import comments_router as post_comments
from hublet.community.posts.routes import router as posts
from hublet.core.database import Database
from hublet.core.http import Edge, Router, add_routes, install_error_handlers
from hublet.core.http.faults import FaultMiddleware, Faults
from hublet.core.http.routers import fast_handlers
from hublet.core.http.routes import operations_router as operations
from hublet.core.http.routes import test_mode_router as test_mode
from hublet.core.limits import Limiter
from hublet.core.logs import AccessLog
from hublet.core.metrics import Metrics
from hublet.gaps import router as gaps
from hublet.gateway.ports.reverse_proxy import PortsMiddleware, ReverseProxy
from hublet.gateway.routes import router as job_entries
from hublet.jobs.logs.routes import router as job_logs
from hublet.jobs.logs.watcher import LogWatcher
from hublet.jobs.metrics import JobGauge
from hublet.jobs.routes import metrics_router as job_metrics
from hublet.jobs.routes import router as jobs
from hublet.jobs.schedules.routes import router as scheduled_jobs
from hublet.login.passkeys_routes import pages_router as passkeys
from hublet.login.passkeys_routes import script_router as passkey_options
from hublet.login.routes import router as login
from hublet.login.routes import session_pages_router as session_pages
from hublet.login.routes import sessions_router as sessions
from hublet.mcp.routes import router as mcp_tools
from hublet.notifications.inbox.routes import router as inbox
from hublet.notifications.inbox.routes import stream_router as live_notifications
from hublet.notifications.inbox.stream import InboxWatcher
from hublet.notifications.routes import links_router as links_in_mails
from hublet.notifications.routes import messages_router as hub_messages
from hublet.notifications.routes import preferences_router as preferences
from hublet.notifications.routes import watches_router as watching
from hublet.oauth.apps.routes import logos_router as oauth_logos
from hublet.oauth.apps.routes import organizations_router as organization_oauth_apps
from hublet.oauth.apps.routes import router as oauth_apps
from hublet.oauth.apps.routes import secrets_router as oauth_secrets
from hublet.oauth.authorize.routes import router as authorization
from hublet.oauth.grants.context import GrantContext
from hublet.oauth.pages.applications import router as app_pages
from hublet.oauth.pages.connected_apps import api_router as oauth_accesses
from hublet.oauth.pages.connected_apps import pages_router as connected_pages
from hublet.oauth.pages.device import router as device_page
from hublet.oauth.pages.end_session import router as end_session
from hublet.oauth.routes import discovery_router as discovery
from hublet.oauth.routes import introspection_router as introspection
from hublet.oauth.routes import registration_router as registration
from hublet.oauth.routes import revocation_router as revocation
from hublet.oauth.routes import token_router as oauth_tokens
from hublet.oauth.routes import userinfo_router as userinfo
from hublet.pages.routes import router as pages
from hublet.repos.attachments_routes import router as attachments
from hublet.repos.browse.download_routes import router as downloads
from hublet.repos.browse.downloads import DownloadCounter
from hublet.repos.browse.routes import lists_router as repo_lists
from hublet.repos.browse.routes import router as repo_information
from hublet.repos.browse.tree_routes import router as trees
from hublet.repos.commits.routes import cards_router as cards
from hublet.repos.commits.routes import router as commits
from hublet.repos.files.bucket_routes import buckets, containers
from hublet.repos.files.routes import (
    bucket_batches,
    bucket_files,
    container_batches,
    container_files,
)
from hublet.repos.gating_routes import router as gating
from hublet.repos.lfs.management_routes import router as lfs_files
from hublet.repos.lfs.routes import router as lfs
from hublet.repos.lfs.routes import transfers_router as lfs_transfers
from hublet.repos.push.routes import router as smart_http
from hublet.repos.refs.routes import router as refs
from hublet.repos.routes import likes_router as likes
from hublet.repos.routes import router as repos
from hublet.repos.routes import settings_router as repo_settings
from hublet.runtime.supervisor.runner_selection import RunnerAvailability
from hublet.scim.routes import invited as scim
from hublet.scim.routes import managed as managed_scim
from hublet.tokens.auth import known_caller
from hublet.tokens.cache import CallerCache
from hublet.tokens.routes import administration_router as administered_tokens
from hublet.tokens.routes import router as tokens
from hublet.tokens.routes import service_accounts_router as service_account_tokens
from hublet.webhooks.activity.routes import organization_resend_router as organization_resending
from hublet.webhooks.activity.routes import organization_router as organization_deliveries
from hublet.webhooks.activity.routes import resend_router as webhook_resending
from hublet.webhooks.activity.routes import router as webhook_deliveries
from hublet.webhooks.routes import organization_router as organization_webhooks
from hublet.webhooks.routes import router as webhooks

# In the order they are looked up: what the hub lacks comes last.
FEATURES: tuple[Router, ...] = (
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
    login,
    sessions,
    session_pages,
    passkeys,
    passkey_options,
    repos,
    repo_lists,
    repo_information,
    repo_settings,
    gating,
    likes,
    buckets,
    bucket_files,
    bucket_batches,
    containers,
    container_files,
    container_batches,
    attachments,
    commits,
    refs,
    cards,
    trees,
    downloads,
    lfs,
    lfs_transfers,
    lfs_files,
    smart_http,
    discussions,
    pull_requests,
    papers,
    paper_comments,
    posts,
    post_comments,
    blogs,
    blog_comments,
    jobs,
    job_logs,
    job_metrics,
    job_entries,
    scheduled_jobs,
    webhooks,
    organization_webhooks,
    webhook_deliveries,
    organization_deliveries,
    webhook_resending,
    organization_resending,
    inbox,
    mcp_tools,
    hub_messages,
    preferences,
    links_in_mails,
    live_notifications,
    watching,
    discovery,
    userinfo,
    end_session,
    oauth_tokens,
    revocation,
    introspection,
    oauth_apps,
    oauth_secrets,
    oauth_logos,
    organization_oauth_apps,
    registration,
    authorization,
    device_page,
    oauth_accesses,
    connected_pages,
    app_pages,
    scim,
    managed_scim,
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
    )
    install_error_handlers(app)
    if settings.server.test_mode:
        add_routes(app, test_mode)
        app.state.faults = Faults()
    for feature in FEATURES:
        add_routes(app, feature)
    app.state.database = database
    app.state.settings = settings
    app.state.callers = CallerCache(database)
    app.state.downloads = DownloadCounter(database)
    app.state.inbox_watcher = InboxWatcher(database)
    app.state.job_logs = LogWatcher(database)
    app.state.limiter = Limiter(quiet=settings.server.test_mode)
    app.state.desk = GrantContext(database, app.state.limiter)
    app.state.jobs = RunnerAvailability(settings)
    app.state.metrics = Metrics()
    app.state.ports = ReverseProxy(
        database,
        callers=app.state.callers,
        availability=app.state.jobs,
        metrics=app.state.metrics,
    )
    app.state.metrics.counts.append(JobGauge(app.state.metrics.registry).count)
    return app


def with_edge(app: FastAPI, *, access_log: AccessLog | None = None) -> ASGIApp:
    edge = Edge(
        app,
        settings=app.state.settings,
        fast_routes=fast_handlers(app.routes),
        known_caller=partial(known_caller, app.state.callers),
        access_log=access_log,
        metrics=app.state.metrics,
    )
    faults: Faults | None = getattr(app.state, "faults", None)
    app.state.ports.access_log = access_log
    return PortsMiddleware(
        edge if faults is None else FaultMiddleware(edge, faults), app.state.ports
    )
