"""All routes of SCIM, for both directories of an organization."""

from hublet.core.http import Router
from hublet.core.http.rendering import tell_errors_in
from hublet.scim.auth import for_managed_users
from hublet.scim.discovery.routes import router as discovery
from hublet.scim.errors import MEDIA_TYPE, error_body
from hublet.scim.groups.routes import router as groups
from hublet.scim.users.routes import router as users

invited = Router(tags=["scim"])
# What no other route matches is refused by the last one, of the discovery.
invited.routes.extend([*users.routes, *groups.routes, *discovery.routes])

managed = for_managed_users(invited)

tell_errors_in(
    "/api/organizations/[^/]+/scim(-provisioning)?/v2/.*", body=error_body, media_type=MEDIA_TYPE
)
