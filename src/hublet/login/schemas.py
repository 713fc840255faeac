"""Wire shapes of a session and of a new password."""

from typing import Self

from pydantic import MISSING

from hublet.accounts.schemas import NewPassword
from hublet.core.schema import ObjectId, Schema, Timestamp
from hublet.login import records


class ChangePassword(Schema):
    currentPassword: str
    newPassword: NewPassword


class BrowserSession(Schema):
    id: ObjectId
    createdAt: Timestamp
    authenticatedAt: Timestamp
    lastUsedAt: Timestamp
    expiresAt: Timestamp
    address: str | MISSING = MISSING
    agent: str | MISSING = MISSING

    @classmethod
    def of(cls, session: records.Session) -> Self:
        return cls(
            id=session.id,
            createdAt=session.created_at,
            authenticatedAt=session.authenticated_at,
            lastUsedAt=session.last_used_at,
            expiresAt=session.expires_at,
            address=MISSING if session.address is None else session.address,
            agent=MISSING if session.agent is None else session.agent,
        )
