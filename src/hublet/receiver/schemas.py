"""Webhook payload with the names of the public library; unknown fields are kept."""

from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", populate_by_name=True)


class ObjectId(_Part):
    id: str


class WebhookPayloadUrl(_Part):
    web: str
    api: str | None = None


class WebhookPayloadMovedTo(_Part):
    name: str
    owner: ObjectId


class WebhookPayloadWebhook(ObjectId):
    version: int


class WebhookPayloadEvent(_Part):
    """What happened: today create, delete, move or update of a repo or a discussion, or a ping."""

    action: str
    scope: str


class WebhookPayloadDiscussionChanges(_Part):
    base: str
    mergeCommitId: str | None = None


class WebhookPayloadComment(ObjectId):
    author: ObjectId
    hidden: bool
    # A hidden comment has none.
    content: str | None = None
    url: WebhookPayloadUrl


class WebhookPayloadDiscussion(ObjectId):
    num: int
    author: ObjectId
    url: WebhookPayloadUrl
    title: str
    isPullRequest: bool
    status: str
    changes: WebhookPayloadDiscussionChanges | None = None
    pinned: bool | None = None


class WebhookPayloadRepo(ObjectId):
    """A model, dataset, space, bucket, kernel or container, or what there may be one day."""

    owner: ObjectId
    head_sha: str | None = Field(
        default=None,
        validation_alias=AliasChoices("headSha", "head_sha"),
        serialization_alias="headSha",
    )
    name: str
    private: bool
    subdomain: str | None = None
    tags: list[str] | None = None
    type: str
    url: WebhookPayloadUrl


class WebhookPayloadUpdatedRef(_Part):
    ref: str
    # None for what was created.
    oldSha: str | None = None
    # None for what was deleted.
    newSha: str | None = None


class WebhookPayloadUpdatedFile(_Part):
    path: str
    action: str
    xetHash: str | None = None
    size: int | None = None


class WebhookPayloadUpdatedImage(_Part):
    """A tag of a container's image that was pushed or deleted."""

    # As in a pull, without the host: owner/name, or a path below it.
    image: str
    # None for a manifest that was deleted and had no tag.
    tag: str | None = None
    # None for what was deleted.
    digest: str | None = None
    # None for what was created.
    oldDigest: str | None = None


class WebhookPayload(_Part):
    """What the body of a delivery says, version 3."""

    event: WebhookPayloadEvent
    repo: WebhookPayloadRepo
    discussion: WebhookPayloadDiscussion | None = None
    comment: WebhookPayloadComment | None = None
    webhook: WebhookPayloadWebhook
    movedTo: WebhookPayloadMovedTo | None = None
    updatedRefs: list[WebhookPayloadUpdatedRef] | None = None
    updatedFiles: list[WebhookPayloadUpdatedFile] | None = None
    updatedImages: list[WebhookPayloadUpdatedImage] | None = None
    updatedConfig: dict[str, Any] | None = None
