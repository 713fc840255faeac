"""Messages of the hub on the wire."""

from typing import Annotated, Self

from pydantic import Field

from hublet.core.schema import ObjectId, Schema, Timestamp
from hublet.notifications.messages import records


class Message(Schema):
    id: ObjectId
    kind: Annotated[str, Field(description="What it is about, as in `webhook-suspended`.")]
    title: str
    body: Annotated[str, Field(description="Plain text; an empty line ends a paragraph.")]
    createdAt: Timestamp

    @classmethod
    def of(cls, message: records.Message) -> Self:
        text = message.text
        return cls(
            id=message.id,
            kind=text.kind,
            title=text.title,
            body=text.body,
            createdAt=message.created_at,
        )
