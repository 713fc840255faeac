"""Records of the registry: names of images, descriptors, manifests, blobs, tags and uploads."""

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
class Descriptor:
    """What a manifest says of a blob or of another manifest."""

    digest: str
    size: int | None = None
    media_type: str | None = None
    # Whether the registry must have it: what clients fetch elsewhere, or carry with them, need not
    # be there, nor what no known field names.
    is_required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedManifest:
    """A manifest that arrived, and what it says."""

    digest: str
    media_type: str
    content: bytes
    # Each digest once, without the subject.
    references: tuple[Descriptor, ...] = ()
    subject: str | None = None
    artifact_type: str | None = None
    annotations: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Referrer:
    """A manifest that is about another one, as a list of referrers shows it."""

    digest: str
    media_type: str
    size: int
    artifact_type: str | None = None
    annotations: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryBlob:
    digest: str
    # Under which the store has it.
    sha256: str
    size: int
    touched_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    name: str
    digest: str
    pushed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """An upload of a blob that is not complete."""

    id: str
    image: ImageKey
    user_id: str
    # How many bytes arrived.
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadPart:
    """Bytes of an upload that arrived with one request, and lie in the store as one object."""

    upload_id: str
    # Of its first byte.
    position: int
    size: int
    sha256: str
