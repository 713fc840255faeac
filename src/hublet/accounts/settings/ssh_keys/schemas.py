"""The caller's own SSH keys on the wire."""

from typing import Annotated, Self

from pydantic import Field

from hublet.accounts.settings.ssh_keys import records
from hublet.core.schema import Line, ObjectId, Schema, Timestamp


class AddSshKey(Schema):
    title: Line
    # The line of an `id_….pub` file.
    key: Annotated[str, Field(min_length=1)]


class SshKey(Schema):
    id: ObjectId
    title: str
    key: str
    fingerprint: str
    createdAt: Timestamp

    @classmethod
    def of(cls, key: records.SshKey) -> Self:
        return cls(
            id=key.id,
            title=key.title,
            key=f"{key.type} {key.data}",
            fingerprint=key.fingerprint,
            createdAt=key.created_at,
        )
