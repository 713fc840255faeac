"""Builds the application from the features: the only module that knows all of them."""

from functools import partial

from fastapi import FastAPI
from starlette.types import ASGIApp

import hublet.reactions  # noqa: F401 - importing registers what reacts to facts
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
from hublet.community.blogs.comments.routes import router as blog_comments
from hublet.community.blogs.routes import router as blogs
from hublet.community.discussions.pull_requests.routes import router as pull_requests
from hublet.community.discussions.routes import router as discussions
from hublet.community.papers.comments.routes import router as paper_comments
from hublet.community.papers.routes import router as papers
from hublet.community.posts.comments.routes import router as post_comments
from hublet.community.posts.routes import router as posts
from hublet.core.database import Database
from hublet.core.http import Edge, Router, add_routes, install_error_handlers
from hublet.core.http.faults import FaultLayer, Faults
from hublet.core.http.hot import hot_handlers
from hublet.core.http.operations import router as operations
from hublet.core.http.test_mode import router as test_mode
from hublet.core.limits import Limiter
from hublet.core.logs import AccessLog
from hublet.core.metrics import Metrics
from hublet.gaps import router as gaps
from hublet.jobs.availability import Availability
from hublet.jobs.logs.lookout import Lookout
from hublet.jobs.logs.routes import router as job_logs
from hublet.jobs.measures import JobGauge
from hublet.jobs.metrics.routes import router as job_metrics
from hublet.jobs.reaching.entrance import Entrance
from hublet.jobs.reaching.proxy import Ports
from hublet.jobs.reaching.routes import router as job_entries
from hublet.jobs.routes import router as jobs
from hublet.jobs.schedules.routes import router as scheduled_jobs
from hublet.login.passkeys.routes import pages as passkeys
from hublet.login.passkeys.routes import script as passkey_options
from hublet.login.routes import router as login
from hublet.login.sessions.routes import api as sessions
from hublet.login.sessions.routes import pages as session_pages
from hublet.mcp.routes import router as mcp_tools
from hublet.notifications.inbox.routes import router as inbox
from hublet.notifications.live.bells import Bells
from hublet.notifications.live.routes import router as live_notifications
from hublet.notifications.mail.routes import router as links_in_mails
from hublet.notifications.messages.routes import router as hub_messages
from hublet.notifications.preferences.routes import router as preferences
from hublet.notifications.watching.routes import router as watching
from hublet.oauth.app_pages.routes import router as app_pages
from hublet.oauth.apps.logos.routes import router as oauth_logos
from hublet.oauth.apps.organizations.routes import router as organization_oauth_apps
from hublet.oauth.apps.routes import router as oauth_apps
from hublet.oauth.apps.secrets.routes import router as oauth_secrets
from hublet.oauth.authorization.routes import router as authorization
from hublet.oauth.connected.routes import api as oauth_accesses
from hublet.oauth.connected.routes import pages as connected_pages
from hublet.oauth.device_page.routes import router as device_page
from hublet.oauth.discovery.routes import router as discovery
from hublet.oauth.end_session.routes import router as end_session
from hublet.oauth.grants.desk import Desk
from hublet.oauth.introspection.routes import router as introspection
from hublet.oauth.registration.routes import router as registration
from hublet.oauth.revocation.routes import router as revocation
from hublet.oauth.token.routes import router as oauth_tokens
from hublet.oauth.userinfo.routes import router as userinfo
from hublet.pages.routes import router as pages
from hublet.repos.attachments.routes import router as attachments
from hublet.repos.cards.routes import router as cards
from hublet.repos.commits.routes import router as commits
from hublet.repos.downloads.counting import DownloadCounter
from hublet.repos.downloads.routes import router as downloads
from hublet.repos.files.batch.routes import buckets as bucket_batches
from hublet.repos.files.batch.routes import containers as container_batches
from hublet.repos.files.buckets.routes import buckets, containers
from hublet.repos.files.routes import buckets as bucket_files
from hublet.repos.files.routes import containers as container_files
from hublet.repos.gating.routes import router as gating
from hublet.repos.information.routes import router as repo_information
from hublet.repos.lfs.management.routes import router as lfs_files
from hublet.repos.lfs.routes import router as lfs
from hublet.repos.lfs.transfers.routes import router as lfs_transfers
from hublet.repos.likes.routes import router as likes
from hublet.repos.lists.routes import router as repo_lists
from hublet.repos.refs.routes import router as refs
from hublet.repos.routes import router as repos
from hublet.repos.settings.routes import router as repo_settings
from hublet.repos.smart_http.routes import router as smart_http
from hublet.repos.trees.routes import router as trees
from hublet.scim.routes import invited as scim
from hublet.scim.routes import managed as managed_scim
from hublet.tokens.administration.routes import router as administered_tokens
from hublet.tokens.auth import known_caller
from hublet.tokens.cache import CallerCache
from hublet.tokens.routes import router as tokens
from hublet.tokens.service_accounts.routes import router as service_account_tokens
from hublet.webhooks.activity.resending.routes import of_organizations as organization_resending
from hublet.webhooks.activity.resending.routes import own as webhook_resending
from hublet.webhooks.activity.routes import of_organizations as organization_deliveries
from hublet.webhooks.activity.routes import own as webhook_deliveries
from hublet.webhooks.routes import of_organizations as organization_webhooks
from hublet.webhooks.routes import own as webhooks

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
    app.state.inbox_bells = Bells(database)
    app.state.job_logs = Lookout(database)
    app.state.limiter = Limiter(quiet=settings.server.test_mode)
    app.state.desk = Desk(database, app.state.limiter)
    app.state.jobs = Availability(settings)
    app.state.metrics = Metrics()
    app.state.ports = Ports(
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
        hot=hot_handlers(app.routes),
        known_caller=partial(known_caller, app.state.callers),
        access_log=access_log,
        metrics=app.state.metrics,
    )
    faults: Faults | None = getattr(app.state, "faults", None)
    app.state.ports.access_log = access_log
    return Entrance(edge if faults is None else FaultLayer(edge, faults), app.state.ports)
