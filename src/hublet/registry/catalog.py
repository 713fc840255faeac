"""Catalogue of a container repository: its tags with platforms and sizes, its images with layers.

Everything is read from the manifests and configurations as they were pushed. Configurations lie in
the store; what was read of one is remembered by its digest, which says what is in it.
"""

import asyncio
import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from hublet.core.clock import to_micros
from hublet.core.database import Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.paging import InvalidCursor
from hublet.registry import catalog_store as store
from hublet.registry.errors import ReferenceNotFound
from hublet.registry.image_documents import (
    ImageConfig,
    ImageDescriptor,
    ImageDocument,
    ImageLayer,
    layers_of,
    read_config,
    read_manifest,
)
from hublet.registry.records import ListedTag, RepoImage, ShownManifest, TagPosition, is_digest
from hublet.repos import blobs_store
from hublet.repos.records import Repo
from hublet.storage.contents import ContentSource
from hublet.storage.object_store import open_store

_IMAGE_CONFIGS = frozenset(
    {
        "application/vnd.oci.image.config.v1+json",
        "application/vnd.docker.container.image.v1+json",
    }
)
_LARGEST_CONFIG = 4 << 20
_CONFIGS_REMEMBERED = 2000
# An index may name indexes; deeper ones are not looked into.
_DEEPEST_INDEX = 3
_TAG_CURSOR = re.compile(r"(\d{1,18}):([a-z0-9/._-]*):([A-Za-z0-9_.-]{1,128})")

# Configurations that were read, by SHA-256, the oldest first.
_remembered: dict[str, ImageConfig] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class TagView:
    """A tag, what it can run on, and all bytes that it reaches."""

    tag: ListedTag
    platforms: Sequence[str]
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildView:
    """A manifest that an index names; without size, it was never pushed."""

    digest: str
    media_type: str
    platform: str | None
    size: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestView:
    manifest: ShownManifest
    tags: Sequence[str]
    config: ImageConfig | None
    layers: Sequence[ImageLayer]
    # Of an index.
    children: Sequence[ChildView]
    platforms: Sequence[str]
    size: int


async def list_images(conn: Reader, repo: Repo) -> list[RepoImage]:
    return await store.list_images(conn, repo.id)


async def count_tags(conn: Reader, repo_ids: Collection[str]) -> dict[str, int]:
    return await store.count_tags(conn, repo_ids)


async def list_tags(
    database: Database,
    repo: Repo,
    *,
    image: str | None = None,
    search: str = "",
    after: str = "",
    limit: int,
) -> list[TagView]:
    """Return tags, those pushed last first; without an image, those of all of them."""
    async with database.read() as conn:
        tags = await store.list_tags(
            conn, repo.id, image=image, search=search, after=read_tag_cursor(after), limit=limit
        )
    views: dict[tuple[str, str], TagView] = {}
    for path in dict.fromkeys(tag.image for tag in tags):
        own = [tag for tag in tags if tag.image == path]
        reach = await _read(database, repo, path, {tag.digest: tag.content for tag in own})
        for tag in own:
            views[path, tag.name] = TagView(
                tag=tag, platforms=reach.platforms_of(tag.digest), size=reach.size_of(tag.digest)
            )
    return [views[tag.image, tag.name] for tag in tags]


async def get_tag(conn: Reader, repo: Repo, *, image: str, name: str) -> ListedTag:
    tag = await store.find_tag(conn, repo.id, image=image, name=name)
    if tag is None:
        raise ReferenceNotFound(name)
    return tag


async def get_manifest(
    database: Database, repo: Repo, *, image: str, reference: str
) -> ManifestView:
    """Return a manifest by its digest or by a tag."""
    async with database.read() as conn:
        digest = reference
        if not is_digest(reference):
            tag = await store.find_tag(conn, repo.id, image=image, name=reference)
            digest = tag.digest if tag else ""
        found = await store.find_manifests(conn, repo.id, image=image, digests=[digest])
        if digest not in found:
            raise ReferenceNotFound(reference)
        tags = await store.list_tags_of(conn, repo.id, image=image, digest=digest)
    reach = await _read(database, repo, image, {digest: found[digest].content})
    document = reach.documents[digest]
    config = reach.config_of(document)
    return ManifestView(
        manifest=found[digest],
        tags=tags,
        config=config,
        layers=layers_of(document, config),
        children=[reach.child(each) for each in document.manifests],
        platforms=reach.platforms_of(digest),
        size=reach.size_of(digest),
    )


def write_tag_cursor(view: TagView) -> str:
    tag = view.tag
    return f"{to_micros(tag.pushed_at)}:{tag.image}:{tag.name}"


def read_tag_cursor(text: str) -> TagPosition | None:
    """Return None at the start of a list; refuse what `write_tag_cursor` did not write."""
    if not text:
        return None
    match = _TAG_CURSOR.fullmatch(text)
    if match is None:
        raise InvalidCursor
    return TagPosition(pushed_at=int(match[1]), image=match[2], name=match[3])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reach:
    """What some manifests of an image reach: documents by digest, and configurations that were read."""

    documents: Mapping[str, ImageDocument]
    manifest_sizes: Mapping[str, int]
    configs: Mapping[str, ImageConfig]

    def config_of(self, document: ImageDocument) -> ImageConfig | None:
        return self.configs.get(document.config.digest) if document.config else None

    def child(self, each: ImageDescriptor) -> ChildView:
        return ChildView(
            digest=each.digest,
            media_type=each.media_type,
            platform=each.platform or next(iter(self.platforms_of(each.digest)), None),
            size=self.size_of(each.digest) if each.digest in self.documents else None,
        )

    def platforms_of(self, digest: str) -> list[str]:
        """Return what an image can run on, each once, in the order of its index."""
        return list(dict.fromkeys(filter(None, self._platforms(digest))))

    def _platforms(self, digest: str) -> Iterator[str | None]:
        for document in self._documents_from(digest).values():
            yield from (each.platform for each in document.manifests)
            config = self.config_of(document)
            yield config.platform if config else None

    def size_of(self, digest: str) -> int:
        documents = self._documents_from(digest)
        sizes = {each: self.manifest_sizes[each] for each in documents}
        for document in documents.values():
            named = (*document.layers, *([document.config] if document.config else []))
            sizes |= {each.digest: each.size for each in named}
        return sum(sizes.values())

    def _documents_from(self, digest: str) -> dict[str, ImageDocument]:
        """Return a document and those that it names, each once: an index may name one many times."""
        found: dict[str, ImageDocument] = {}
        waiting = deque([digest])
        while waiting:
            each = waiting.popleft()
            if each in self.documents and each not in found:
                found[each] = self.documents[each]
                waiting += [child.digest for child in found[each].manifests]
        return found


async def _read(
    database: Database, repo: Repo, image: str, contents: Mapping[str, bytes]
) -> _Reach:
    """Read manifests, those that they name, and the configurations that say more."""
    found = dict(contents)
    documents = {digest: read_manifest(content) for digest, content in found.items()}
    async with database.read() as conn:
        for _ in range(_DEEPEST_INDEX):
            named = {each.digest for one in documents.values() for each in one.manifests}
            more = await store.find_manifests(
                conn, repo.id, image=image, digests=named - documents.keys()
            )
            found |= {digest: each.content for digest, each in more.items()}
            documents |= {digest: read_manifest(each.content) for digest, each in more.items()}
            if not more:
                break
    return _Reach(
        documents=documents,
        manifest_sizes={digest: len(content) for digest, content in found.items()},
        configs=await _read_configs(database, repo, image, documents.values()),
    )


async def _read_configs(
    database: Database, repo: Repo, image: str, documents: Iterable[ImageDocument]
) -> dict[str, ImageConfig]:
    wanted = {
        each.config.digest
        for each in documents
        if each.config is not None
        and each.config.media_type in _IMAGE_CONFIGS
        and each.config.size <= _LARGEST_CONFIG
    }
    if not wanted:
        return {}
    async with database.read() as conn:
        blobs = await store.list_blob_contents(conn, repo.id, image=image, digests=wanted)
        unread = set(blobs.values()) - _remembered.keys()
        contents = await blobs_store.find_contents(conn, repo.id, unread)
    storage = open_store(database.hub.settings)
    sources = {
        sha256: (ContentSource(storage, each), each.size) for sha256, each in contents.items()
    }
    read = await asyncio.to_thread(_read_sources, sources)
    known = _remembered | read
    _remember(read)
    return {digest: known[sha256] for digest, sha256 in blobs.items() if sha256 in known}


def _read_sources(sources: Mapping[str, tuple[ContentSource, int]]) -> dict[str, ImageConfig]:
    return {
        sha256: read_config(b"".join(source.pieces(0, min(size, _LARGEST_CONFIG))))
        for sha256, (source, size) in sources.items()
    }


def _remember(configs: Mapping[str, ImageConfig]) -> None:
    _remembered.update(configs)
    for sha256 in list(_remembered)[: max(len(_remembered) - _CONFIGS_REMEMBERED, 0)]:
        del _remembered[sha256]
