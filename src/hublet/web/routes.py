"""The routes of all pages, in the order in which they are looked up.

Pages with a fixed first word come first, then those of repositories, then those of owners.
"""

from hublet.core.http.error_responses import set_error_page
from hublet.core.http.routers import Router
from hublet.web import site_routes
from hublet.web.account import client_routes, join_routes, token_routes
from hublet.web.account import profile_routes as account_profile_routes
from hublet.web.admin import account_routes as admin_account_routes
from hublet.web.admin import overview_routes, work_routes
from hublet.web.admin import site_routes as admin_site_routes
from hublet.web.discovery import (
    collection_routes,
    home_routes,
    list_routes,
    people_routes,
    search_routes,
)
from hublet.web.files import commit_routes, edit_routes, feed_routes, ref_routes
from hublet.web.files import routes as file_routes
from hublet.web.inbox import routes as inbox_routes
from hublet.web.inbox import settings_routes as notification_routes
from hublet.web.jobs import form_routes as job_form_routes
from hublet.web.jobs import job_routes, schedule_routes
from hublet.web.jobs import list_routes as job_list_routes
from hublet.web.organizations import account_routes as service_account_routes
from hublet.web.organizations import (
    audit_routes,
    group_routes,
    member_routes,
    security_routes,
    usage_routes,
)
from hublet.web.organizations import profile_routes as organization_profile_routes
from hublet.web.pages import render_error_page
from hublet.web.repos import (
    container_routes,
    creation_routes,
    dataset_routes,
    gate_routes,
    publisher_routes,
    settings_routes,
    webhook_routes,
)
from hublet.web.repos import file_routes as bucket_routes
from hublet.web.repos import routes as repo_routes
from hublet.web.threads import routes as thread_routes
from hublet.web.webhooks import routes as owner_webhook_routes

set_error_page(render_error_page)

ROUTERS: tuple[Router, ...] = (
    site_routes.router,
    site_routes.pages,
    home_routes.router,
    search_routes.router,
    creation_routes.router,
    list_routes.router,
    collection_routes.router,
    *thread_routes.PUBLIC_ROUTERS,
    inbox_routes.router,
    notification_routes.router,
    # Before the page of one job, whose address has the same form.
    job_form_routes.router,
    schedule_routes.router,
    job_list_routes.router,
    job_routes.router,
    account_profile_routes.router,
    token_routes.router,
    client_routes.router,
    join_routes.router,
    owner_webhook_routes.router,
    organization_profile_routes.router,
    member_routes.router,
    group_routes.router,
    service_account_routes.router,
    security_routes.router,
    audit_routes.router,
    usage_routes.router,
    overview_routes.router,
    admin_account_routes.router,
    work_routes.router,
    admin_site_routes.router,
    people_routes.lists_router,
    collection_routes.repo_router,
    bucket_routes.router,
    container_routes.router,
    repo_routes.router,
    dataset_routes.router,
    gate_routes.router,
    settings_routes.router,
    webhook_routes.router,
    publisher_routes.router,
    file_routes.router,
    commit_routes.router,
    edit_routes.router,
    feed_routes.router,
    ref_routes.router,
    *thread_routes.ROUTERS,
    people_routes.router,
)
