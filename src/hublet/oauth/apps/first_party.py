"""The app that every hub has: the public command line, which signs people in by device code."""

from datetime import timedelta

from hublet.core.clock import now
from hublet.core.database import Connection
from hublet.core.ids import new_object_id
from hublet.oauth.apps import store
from hublet.oauth.records import COMMAND_LINE_CLIENT_ID, App, AppKind
from hublet.tokens.records import ALL_SCOPES

# The client asks for a new token when less than a day is left: a short life means many requests.
TOKEN_LIFE = timedelta(days=30)


async def provision(conn: Connection) -> None:
    """Add it unless it is there; doing so again changes nothing."""
    at = now()
    app = App(
        id=new_object_id(),
        client_id=COMMAND_LINE_CLIENT_ID,
        kind=AppKind.first_party,
        name="Command line",
        scopes=ALL_SCOPES,
        token_seconds=int(TOKEN_LIFE.total_seconds()),
        created_at=at,
        updated_at=at,
    )
    await store.add(conn, app)
