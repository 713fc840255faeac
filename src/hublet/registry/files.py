"""Files of a container: blobs and manifests of its images as the file endpoints show them.

`blobs/<algorithm>/<hex>` is every blob and manifest that an image of the repository has,
`manifests/[<image>/]_tags/<tag>` what a tag stands for: no part of an image's path begins with `_`, so
no tag is in the way of an image. They keep their contents from pruning.
"""

from collections.abc import Iterable, Sequence

from hublet.core.clock import now
from hublet.core.database import Connection
from hublet.registry import store
from hublet.registry.records import ImageKey
from hublet.repos.files import store as files_store
from hublet.repos.files.changes import note_changes
from hublet.repos.files.records import File

BLOBS = "blobs/"
MANIFESTS = "manifests/"
BINARY = "application/octet-stream"


def blob_path(digest: str) -> str:
    return BLOBS + digest.replace(":", "/")


def tag_path(image: ImageKey, tag: str) -> str:
    return MANIFESTS + "/".join(filter(None, (image.path, "_tags", tag)))


def new_file(path: str, *, sha256: str, size: int, media_type: str = BINARY) -> File:
    at = now()
    return File(
        path=path, sha256=sha256, size=size, media_type=media_type, modified_at=at, uploaded_at=at
    )


async def put_files(conn: Connection, repo_id: str, files: Sequence[File]) -> int:
    """Show files of a repository that is locked; return by how many bytes it grew."""
    before = await files_store.find_all(conn, repo_id, [file.path for file in files])
    changed = [
        file
        for file in files
        if file.path not in before
        or (before[file.path].sha256, before[file.path].media_type)
        != (file.sha256, file.media_type)
    ]
    replaced = [before[file.path] for file in changed if file.path in before]
    growth = sum(file.size for file in changed) - sum(file.size for file in replaced)
    if changed:
        await files_store.put(conn, repo_id, changed)
        await note_changes(conn, repo_id, added=changed, before=before)
        await files_store.add_totals(conn, repo_id, size=growth, files=len(changed) - len(replaced))
    return growth


async def remove_tags(conn: Connection, image: ImageKey, tags: Iterable[str]) -> None:
    await _remove(conn, image.repo_id, [tag_path(image, tag) for tag in tags])


async def remove_blobs(conn: Connection, repo_id: str, digests: Iterable[str]) -> None:
    """Show no longer what no image of the repository has any more."""
    gone = set(digests)
    gone -= await store.find_held(conn, repo_id, gone)
    await _remove(conn, repo_id, [blob_path(digest) for digest in sorted(gone)])


async def _remove(conn: Connection, repo_id: str, paths: Sequence[str]) -> None:
    found = await files_store.find_all(conn, repo_id, paths)
    if found:
        await files_store.remove(conn, repo_id, found)
        await note_changes(conn, repo_id, before=found, removed=found)
        size = sum(file.size for file in found.values())
        await files_store.add_totals(conn, repo_id, size=-size, files=-len(found))
