"""The routes of all pages, in the order in which they are looked up.

Pages with a fixed first word come first, then those of repositories, then those of owners.
"""

from hublet.core.http.error_responses import set_error_page
from hublet.core.http.routers import Router
from hublet.web import site_routes
from hublet.web.discovery import home_routes, list_routes, people_routes, search_routes
from hublet.web.files import commit_routes, edit_routes, feed_routes, ref_routes
from hublet.web.files import routes as file_routes
from hublet.web.organizations import (
    account_routes,
    audit_routes,
    group_routes,
    member_routes,
    profile_routes,
    usage_routes,
)
from hublet.web.pages import render_error_page
from hublet.web.repos import creation_routes, gate_routes, settings_routes, webhook_routes
from hublet.web.repos import file_routes as bucket_routes
from hublet.web.repos import routes as repo_routes
from hublet.web.threads import routes as thread_routes

set_error_page(render_error_page)

ROUTERS: tuple[Router, ...] = (
    site_routes.router,
    site_routes.pages,
    home_routes.router,
    search_routes.router,
    creation_routes.router,
    list_routes.router,
    *thread_routes.PUBLIC_ROUTERS,
    profile_routes.router,
    member_routes.router,
    group_routes.router,
    account_routes.router,
    audit_routes.router,
    usage_routes.router,
    people_routes.lists_router,
    bucket_routes.router,
    repo_routes.router,
    gate_routes.router,
    settings_routes.router,
    webhook_routes.router,
    file_routes.router,
    commit_routes.router,
    edit_routes.router,
    feed_routes.router,
    ref_routes.router,
    *thread_routes.ROUTERS,
    people_routes.router,
)
