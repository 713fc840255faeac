"""Task handlers of credentials: revokes what was reported as leaked."""

from hublet.core.database import Connection
from hublet.core.queue import handles
from hublet.tokens import service
from hublet.tokens.service import REVOKE_TASK, ReportedCredentials


@handles(REVOKE_TASK, reads=ReportedCredentials)
async def revoke_reported(conn: Connection, reported: ReportedCredentials) -> None:
    await service.revoke_reported(conn, reported)
