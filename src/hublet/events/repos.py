"""Events of repositories and their content."""

from collections.abc import Collection

from hublet.core.dataclasses import dataclass
from hublet.core.outbox import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoSnapshot:
    """A repository as it was when something happened to it; `name` is owner/name."""

    id: str
    type: str
    name: str
    owner_id: str
    private: bool
    resource_group_id: str | None = None
    head_sha: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedRef:
    """A branch, tag or pull request that moved; no old sha: created, no new one: deleted."""

    ref: str
    old_sha: str | None
    new_sha: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedFile:
    """A file of a bucket or container; its `action` is "add" (or replace) or "delete"."""

    path: str
    action: str
    sha256: str | None = None
    # The file hash of Xet, unless the content was not cut yet.
    xet_hash: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedImage:
    """A tag of an image that moved; no old digest: created, no new one: deleted.

    Without a tag it is a manifest that had none when it was deleted.
    """

    # The path of the image below its repository, mostly empty.
    path: str
    tag: str | None
    old_digest: str | None
    new_digest: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoCreated(Event):
    """A repository was created."""

    kind = "repo.created"
    repo: RepoSnapshot
    actor_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoDeleted(Event):
    """A repository was deleted, with its content and its discussions."""

    kind = "repo.deleted"
    repo: RepoSnapshot
    actor_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoMoved(Event):
    """A repository got another name or another owner; `repo` shows it as it was before."""

    kind = "repo.moved"
    repo: RepoSnapshot
    moved_to_name: str
    moved_to_owner_id: str
    actor_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoConfigUpdated(Event):
    """A repository's settings changed; `updated_config` holds what changed, with its new values."""

    kind = "repo.config-updated"
    repo: RepoSnapshot
    updated_config: dict[str, str | bool | None]
    actor_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoContentUpdated(Event):
    """Branches, tags or pull requests of a repository moved, by a commit, a push or a merge."""

    kind = "repo.content-updated"
    repo: RepoSnapshot
    updated_refs: tuple[UpdatedRef, ...]
    actor_id: str
    # The first names of all paths that changed (`README.md`, `src`), where they are known and few.
    changed_names: tuple[str, ...] | None = None
    # False: no file that is new has the prefix of a credential of this hub.
    may_leak: bool = True

    def may_change(self, names: Collection[str]) -> bool:
        """Tell whether these files or folders at the top may have changed."""
        return self.changed_names is None or not set(self.changed_names).isdisjoint(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoFilesUpdated(Event):
    """Files of a bucket or container were added or deleted."""

    kind = "repo.files-updated"
    repo: RepoSnapshot
    updated_files: tuple[UpdatedFile, ...]
    actor_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoImagesUpdated(Event):
    """Tags of a container were pushed, or tags and manifests deleted; by nobody: its retention rule."""

    kind = "repo.images-updated"
    repo: RepoSnapshot
    updated_images: tuple[UpdatedImage, ...]
    actor_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequested(Event):
    """Somebody asked to read a gated repository; with an automatic gate it is open already."""

    kind = "repo.access-requested"
    repo: RepoSnapshot
    request_id: str
    user_id: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessDecided(Event):
    """A request to read a gated repository was accepted or rejected, or access was granted."""

    kind = "repo.access-decided"
    repo: RepoSnapshot
    request_id: str
    user_id: str
    status: str
    actor_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoLiked(Event):
    """Somebody likes a repository."""

    kind = "repo.liked"
    repo: RepoSnapshot
    user_id: str
