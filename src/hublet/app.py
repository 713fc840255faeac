"""Application factory: builds the hub's web application from its features."""

from dataclasses import replace
from functools import partial

from fastapi import FastAPI
from starlette.types import ASGIApp

import hublet.reactions  # noqa: F401 - importing registers the reactions to events
from hublet import gaps
from hublet.accounts import routes as accounts
from hublet.community import routes as community
from hublet.core.clock import now
from hublet.core.database import Database
from hublet.core.database_metrics import DatabaseMetrics, PartitionMetrics
from hublet.core.http import Edge, add_routes, install_error_handlers
from hublet.core.http import routes as operations
from hublet.core.http.faults import FaultMiddleware, Faults
from hublet.core.http.route_index import RouteIndex
from hublet.core.http.routers import ApplicationState, FastRoutes
from hublet.core.limits import Limiter
from hublet.core.logs import AccessLog
from hublet.core.metrics import Metrics
from hublet.doctor import HubExamination
from hublet.gateway import routes as gateway
from hublet.gateway.ports.reverse_proxy import PortsMiddleware, ReverseProxy
from hublet.gateway.tunnels import TunnelMiddleware, Tunnels
from hublet.gateway.usage_meter import UsageMeter
from hublet.jobs import routes as jobs
from hublet.jobs.logs.watcher import LogWatcher
from hublet.jobs.metrics import JobGauge
from hublet.login import routes as login
from hublet.mcp import routes as mcp
from hublet.notifications import routes as notifications
from hublet.notifications.inbox.stream import InboxWatcher
from hublet.oauth import routes as oauth
from hublet.oauth.grants.context import GrantContext
from hublet.registry import routes as registry
from hublet.repos import ownerless_routes
from hublet.repos import routes as repos
from hublet.repos.download_counter import DownloadCounter
from hublet.repos.packs.cache_usage import PackCacheMetrics
from hublet.repos.usage import StorageGauges
from hublet.repos.xet.cas import Cas
from hublet.runtime.supervisor.runner_selection import RunnerAvailability
from hublet.scim import routes as scim
from hublet.search import routes as search
from hublet.sql import routes as sql
from hublet.sql import saved_query_routes
from hublet.sql.service import SqlEngine
from hublet.tokens import routes as tokens
from hublet.tokens.auth import known_caller
from hublet.tokens.cache import CallerCache
from hublet.web import routes as web
from hublet.web.jobs.job_stream import JobFeeds
from hublet.web.live import LiveStreams
from hublet.webhooks import routes as webhooks
from hublet.webhooks.activity.partitions_store import TABLES as PARTITIONED

# In the order in which their routes are looked up: what the hub lacks comes last.
FEATURES = (
    operations,
    accounts,
    tokens,
    login,
    # Before the repositories: a name of an image may have any part that their addresses have.
    registry,
    repos,
    saved_query_routes,
    community,
    jobs,
    gateway,
    webhooks,
    notifications,
    mcp,
    oauth,
    scim,
    search,
    sql,
    web,
    ownerless_routes,
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
    app.state = ApplicationState()
    install_error_handlers(app)
    if settings.server.test_mode:
        add_routes(app, operations.test_mode_router)
        app.state.faults = Faults()
    for feature in FEATURES:
        for router in feature.ROUTERS:
            add_routes(app, router)
    app.router.middleware_stack = RouteIndex(app.router)
    app.state.database = database
    app.state.settings = settings
    app.state.downloads = DownloadCounter(database)
    app.state.cas = Cas(database)
    app.state.inbox_watcher = InboxWatcher(database)
    app.state.live_streams = LiveStreams(database)
    app.state.job_logs = LogWatcher(database)
    app.state.job_feeds = JobFeeds(database, app.state.job_logs)
    app.state.limiter = Limiter(quiet=settings.server.test_mode, process=database.hub.process)
    app.state.grant_context = GrantContext(database, app.state.limiter)
    _add_ways_into_jobs(app)
    app.state.sql = SqlEngine(database, app.state.metrics.registry)
    app.state.examination = HubExamination(database)
    app.state.started_at = now()
    return app


def _add_ways_into_jobs(app: FastAPI) -> None:
    database: Database = app.state.database
    app.state.callers = CallerCache(database)
    app.state.jobs = RunnerAvailability(database.hub.settings)
    app.state.metrics = _metrics(database)
    app.state.tunnels = Tunnels(database)
    app.state.job_meter = UsageMeter(app.state.jobs, app.state.tunnels)
    app.state.ports = ReverseProxy(
        database,
        callers=app.state.callers,
        availability=app.state.jobs,
        remote=app.state.tunnels,
        metrics=app.state.metrics,
    )


def create_worker_application(database: Database) -> FastAPI:
    """Build the application of a process that only works: its health, its metrics, ways into its jobs."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    install_error_handlers(app)
    add_routes(app, operations.operations_router)
    app.state.database, app.state.settings = database, database.hub.settings
    _add_ways_into_jobs(app)
    return app


def with_worker_edge(app: FastAPI) -> ASGIApp:
    edge = Edge(
        app,
        hub=app.state.database.hub,
        fast_routes=FastRoutes(),
        known_caller=lambda _: None,
        access_log=None,
        metrics=app.state.metrics,
    )
    return _with_tunnels(app, edge)


def _with_tunnels(app: FastAPI, inner: ASGIApp) -> ASGIApp:
    """Let other nodes in who reach a job of this machine."""
    return TunnelMiddleware(
        inner,
        app.state.database,
        ports=app.state.ports,
        find_attach_point=app.state.jobs.attach_point,
        meter=app.state.jobs.usage,
    )


def _metrics(database: Database) -> Metrics:
    metrics = Metrics()
    metrics.registry.register(DatabaseMetrics(database))
    metrics.registry.register(PackCacheMetrics(database.hub.settings))
    partitions = PartitionMetrics(database, PARTITIONED)
    metrics.registry.register(partitions)
    metrics.counts.append(partitions.count)
    metrics.counts.append(JobGauge(metrics.registry).count)
    metrics.counts.append(StorageGauges(metrics.registry).count)
    return metrics


def with_edge(app: FastAPI, *, access_log: AccessLog | None = None) -> ASGIApp:
    edge = Edge(
        app,
        hub=replace(app.state.database.hub, settings=app.state.settings),
        fast_routes=FastRoutes.of(app.routes, reads_at_once=app.state.database.reads_at_once),
        known_caller=partial(known_caller, app.state.callers),
        access_log=access_log,
        metrics=app.state.metrics,
    )
    faults: Faults | None = getattr(app.state, "faults", None)
    app.state.ports.access_log = access_log
    faulty = edge if faults is None else FaultMiddleware(edge, faults)
    return _with_tunnels(app, PortsMiddleware(faulty, app.state.ports))
