"""Registration of everything that reacts to events or runs tasks: importing this module is enough.

Every process that publishes events imports it, because some reactions belong to the transaction of
the event itself: the application, a worker, and the commands that change something.
"""

import hublet.accounts.reactions
import hublet.community.reactions
import hublet.jobs.reactions
import hublet.login.reactions
import hublet.notifications.reactions
import hublet.oauth.reactions
import hublet.registry.collection
import hublet.repos.reactions
import hublet.runtime.reactions
import hublet.scim.reactions
import hublet.search.reactions
import hublet.tokens.reactions
import hublet.webhooks.reactions  # noqa: F401 - importing registers
