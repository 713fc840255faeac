"""Records of the registry: names of images, descriptors, manifests, blobs, tags and uploads."""

from dataclasses import field
from datetime import datetime
from typing import Any

from hublet.core.dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageName:
    """The name of an image: a container repository, and a path below it, often empty."""

    namespace: str
    repo: str
    path: str = ""

    def __str__(self) -> str:
        return "/".join(filter(None, (self.namespace, self.repo, self.path)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageKey:
    """An image of a repository that exists."""

    repo_id: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    digest: str
    media_type: str
    content: bytes
    artifact_type: str | None = None
    annotations: dict[str, Any] | None = None
    subject: str | None = None
    pushed_at: datetime

    @property
    def size(self) -> int:
        return len(self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryBlob:
    digest: str
    # Under which the store has it.
    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    name: str
    digest: str
    pushed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryCredential:
    """How an owner logs in to another registry."""

    # A user or an organization; empty: the hub itself.
    owner_id: str
    host: str
    username: str
    sealed_secret: str = field(repr=False)
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """An upload of a blob that is not complete."""

    id: str
    image: ImageKey
    user_id: str
    # How many bytes arrived.
    size: int
