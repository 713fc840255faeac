"""Wire schemas of credentials at other registries."""

from typing import Annotated, Self

from pydantic import Field

from hublet.core.schema import Schema, Timestamp
from hublet.registry import records


class RegistryCredential(Schema):
    """Credentials for a registry; the secret is never shown."""

    host: str
    username: str
    createdAt: Timestamp

    @classmethod
    def of(cls, credential: records.RegistryCredential) -> Self:
        return cls(
            host=credential.host, username=credential.username, createdAt=credential.created_at
        )


class SetRegistryCredential(Schema):
    username: Annotated[str, Field(min_length=1, max_length=4096)]
    secret: Annotated[
        str, Field(min_length=1, max_length=4096, description="A password or a token.")
    ]
