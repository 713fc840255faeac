"""Records of the registry: names of images, tags and digests, as the OCI Distribution specification spells
them; descriptors, manifests, blobs and uploads.
"""

import re
from dataclasses import field
from datetime import datetime
from typing import Any

from hublet.core.dataclasses import dataclass
from hublet.registry.errors import InvalidDigest, InvalidImageName, InvalidTag

MAX_NAME_LENGTH = 255

_COMPONENT = "[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*"
_NAME = re.compile(f"{_COMPONENT}(?:/{_COMPONENT})*")
_TAG = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageName:
    """The name of an image: a container repository, and a path below it, often empty."""

    namespace: str
    repo: str
    path: str = ""

    def __str__(self) -> str:
        return "/".join(filter(None, (self.namespace, self.repo, self.path)))


def parse_image_name(text: str) -> ImageName:
    """Return the image that a name stands for: `namespace/name`, or a path below it."""
    if len(text) > MAX_NAME_LENGTH:
        raise InvalidImageName(f"it has at most {MAX_NAME_LENGTH} characters")
    if _NAME.fullmatch(text) is None:
        raise InvalidImageName(
            "its parts have lower-case letters, digits, and single '.', '_' or '-' between them"
        )
    parts = text.split("/", 2)
    if len(parts) == 1:
        raise InvalidImageName("it begins with an owner: namespace/name")
    return ImageName(namespace=parts[0], repo=parts[1], path=parts[2] if len(parts) > 2 else "")  # noqa: PLR2004


def check_tag(text: str) -> None:
    if _TAG.fullmatch(text) is None:
        raise InvalidTag(text)


def is_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


def check_digest(text: str) -> None:
    if not is_digest(text):
        raise InvalidDigest(text)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadPart:
    """Bytes of an upload that arrived with one request, and lie in the store as one object."""

    upload_id: str
    # Of its first byte.
    position: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoImage:
    """An image of a repository, with what is counted of it."""

    path: str
    tags: int
    manifests: int
    # The newest of its manifests.
    pushed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTag:
    """A tag with the manifest that it stands for."""

    image: str
    name: str
    digest: str
    media_type: str
    artifact_type: str | None
    manifest_size: int
    content: bytes
    pushed_at: datetime
    # The name of a user; None: the account is gone.
    pushed_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TagPosition:
    """Position of the last tag on a page of a list, the newest first."""

    # In microseconds.
    pushed_at: int
    image: str
    name: str

    @staticmethod
    def start() -> "TagPosition":
        return TagPosition(pushed_at=(1 << 63) - 1, image="", name="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownManifest:
    image: str
    digest: str
    media_type: str
    artifact_type: str | None
    subject: str | None
    size: int
    content: bytes
    pushed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRule:
    """Which images of a repository are kept; all of them where a field is None."""

    # So many tags of each image, those pushed last.
    keep_tags: int | None = None
    # Manifests without a tag are removed after so many days.
    untagged_days: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageItem:
    """A blob or a manifest of an image."""

    image: ImageKey
    digest: str
