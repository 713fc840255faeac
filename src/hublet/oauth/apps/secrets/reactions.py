"""What happens to secrets because of what happened elsewhere."""

from hublet.core.database import Connection
from hublet.core.outbox import reacts_to
from hublet.events import CredentialsReported
from hublet.oauth.apps.secrets import service


@reacts_to(CredentialsReported)
async def expire_reported(conn: Connection, event: CredentialsReported) -> None:
    await service.expire_reported(conn, event.digests, address=event.address)
