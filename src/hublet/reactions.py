"""Everything that reacts to facts or runs tasks: importing this registers it.

Whoever publishes facts imports it too, because some reactions belong to the transaction of the
fact itself: the application, a worker, and the commands that change something.
"""

import hublet.accounts.audit.reactions
import hublet.community.discussions.pull_requests.reactions
import hublet.jobs.reactions
import hublet.jobs.schedules.reactions
import hublet.jobs.volumes.reactions
import hublet.login.reactions
import hublet.notifications.fan_out.reactions
import hublet.notifications.mail.reactions
import hublet.notifications.messages.leaks.reactions
import hublet.notifications.messages.reactions
import hublet.notifications.watching.reactions
import hublet.oauth.access.reactions
import hublet.oauth.apps.secrets.reactions
import hublet.oauth.keys.reactions
import hublet.oauth.registration.reactions
import hublet.repos.blobs.reactions
import hublet.repos.maintenance.reactions
import hublet.repos.reactions
import hublet.scim.reactions
import hublet.tokens.reactions
import hublet.webhooks.activity.reactions
import hublet.webhooks.activity.resending.reactions
import hublet.webhooks.triggers.reactions  # noqa: F401 - importing registers
