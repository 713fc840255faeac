"""Schemas of watches and mutes: requests to change them, and the lists."""

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import MISSING, Field

from hublet.community.threads.records import ThreadKind
from hublet.core.schema import ObjectId, Schema
from hublet.notifications.records import MuteType, SubscriptionEntry, SubscriptionTarget, WatchType
from hublet.repos.records import RepoType

MOST_PER_REQUEST = 1000


class WatchTarget(Schema):
    id: ObjectId
    type: WatchType


class MuteTarget(Schema):
    id: ObjectId
    type: MuteType


WatchTargets = Annotated[list[WatchTarget], Field(max_length=MOST_PER_REQUEST)]
MuteTargets = Annotated[list[MuteTarget], Field(max_length=MOST_PER_REQUEST)]


class UpdateWatched(Schema):
    """What to watch no more, and then what to watch; the rest stays."""

    delete: WatchTargets = Field(default=[])
    add: WatchTargets = Field(default=[])


class UpdateMuted(Schema):
    """What to hear of again, and then what to mute; the rest stays."""

    delete: MuteTargets = Field(default=[])
    add: MuteTargets = Field(default=[])


class WatchedItem(Schema):
    id: ObjectId
    type: WatchType
    name: Annotated[str, Field(description="Of a repository in the form owner/name.")]
    repoType: RepoType | MISSING = MISSING

    @classmethod
    def of(cls, entry: SubscriptionEntry) -> Self:
        return cls.model_validate(
            {
                "id": entry.id,
                "type": entry.type,
                "name": entry.name,
                "repoType": entry.repo_type or MISSING,
            }
        )


class MutedRepo(Schema):
    id: ObjectId
    type: Literal["repo"]
    name: Annotated[str, Field(description="In the form owner/name.")]
    repoType: RepoType


class MutedThread(Schema):
    id: ObjectId
    type: Literal["thread"]
    name: Annotated[str, Field(description="The title.")]
    kind: ThreadKind


MutedItem = Annotated[MutedRepo | MutedThread, Field(discriminator="type")]


class WatchList(Schema):
    watched: list[WatchedItem]

    @classmethod
    def of(cls, entries: Iterable[SubscriptionEntry]) -> Self:
        return cls(watched=[WatchedItem.of(entry) for entry in entries])


class MuteList(Schema):
    muted: list[MutedItem]

    @classmethod
    def of(cls, entries: Iterable[SubscriptionEntry]) -> Self:
        return cls.model_validate({"muted": [_render_muted(entry) for entry in entries]})


def _render_muted(entry: SubscriptionEntry) -> dict[str, str | None]:
    rendered = {"id": entry.id, "type": entry.type, "name": entry.name}
    if entry.type == MuteType.thread:
        return rendered | {"kind": entry.thread_kind}
    return rendered | {"repoType": entry.repo_type}


def targets_of(items: Iterable[WatchTarget | MuteTarget]) -> list[SubscriptionTarget]:
    return [SubscriptionTarget(type=item.type, id=item.id) for item in items]
