"""Garbage collection of the registry: uploads that were given up, images by rule, unlinked blobs.

Every hour, in this order: uploads to which nothing came for a day; tags beyond what the retention
rule of a repository keeps; manifests that had no tag for as long as the rule says, parents before
children; blobs that no manifest of their image names and that nobody touched for a day. It is safe
beside pushes and beside another collection:

- A row goes in a transaction that has locked its repository, as every push does, and only if the
  statement that deletes it still finds it unneeded. A push that comes first is seen; one that comes
  after finds the blob gone, says so, and the client uploads it.
- To finish an upload, to mount a blob and to be told that a blob is there touches it: a client has a
  day to push the manifest.
- The files of the repository and its totals change in the same transaction. The content itself goes
  with the pruning of the storage, when no repository has it.
"""

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import timedelta
from typing import Any

from hublet.core import clock
from hublet.core.database import Connection, Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.queue import NewTask, handles_slowly
from hublet.core.queue import add as add_task
from hublet.events import UpdatedImage
from hublet.registry import collection_store as store
from hublet.registry import files, service, uploads, uploads_store
from hublet.registry.errors import InvalidRetention
from hublet.registry.records import ImageItem, ImageKey, RetentionRule, Tag
from hublet.repos import service as repos
from hublet.repos import store as repo_rows
from hublet.repos.records import Repo
from hublet.storage.removals import after_backups
from hublet.tokens.records import Caller

MAX_KEEP_TAGS = 10_000
MAX_UNTAGGED_DAYS = 3650

# Clients that know no referrers put what is about a manifest under such a tag: its list of
# referrers, or a signature (`sha256-….sig`).
_TAG_OF_REFERRERS = re.compile(r"(sha256|sha512)-([0-9a-f]{64,128})(?:\..+)?")


async def get_retention_rule(conn: Reader, repo: Repo) -> RetentionRule:
    return await store.find_rule(conn, repo.id)


async def set_retention_rule(
    conn: Connection, caller: Caller, repo: Repo, rule: RetentionRule
) -> None:
    """Set which images are kept; the next collection does what the rule says."""
    _check_number("keepTags", rule.keep_tags, most=MAX_KEEP_TAGS)
    _check_number("untaggedDays", rule.untagged_days, most=MAX_UNTAGGED_DAYS)
    await store.set_rule(conn, repo.id, rule)
    details = {"keepTags": rule.keep_tags, "untaggedDays": rule.untagged_days}
    await repos.record_change(
        conn, repo, "repo.update_retention", actor_id=caller.user_id, details=details
    )


def _check_number(field: str, value: int | None, *, most: int) -> None:
    if value is not None and not 1 <= value <= most:
        raise InvalidRetention(field, most=most)


def subject_of(tag: str) -> str | None:
    """Return the digest of the manifest that a tag is about; None for an ordinary tag."""
    match = _TAG_OF_REFERRERS.fullmatch(tag)
    return f"{match[1]}:{match[2]}" if match else None


def surplus_tags(
    newest_first: Sequence[Tag], keep: int, *, manifests: Collection[str]
) -> list[Tag]:
    """Return the tags that go when so many are kept.

    Tags that are about a manifest do not count: each goes when the image has that manifest no more.
    """
    ordinary = [tag for tag in newest_first if subject_of(tag.name) is None]
    about = [tag for tag in newest_first if subject_of(tag.name) not in {None, *manifests}]
    return [*ordinary[keep:], *about]


COLLECT = "registry.collect"

EVERY = timedelta(hours=1)
# How long an upload may rest, and a blob may wait for its manifest.
UPLOAD_AGE = timedelta(days=1)
BLOB_AGE = timedelta(days=1)
_BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What a collection removed."""

    uploads: int = 0
    tags: int = 0
    manifests: int = 0
    blobs: int = 0


async def schedule_collection(conn: Connection, *, delay: timedelta = timedelta()) -> None:
    """Schedule the collection, once for each hour however often this is called."""
    hour = (clock.now() + delay).strftime("%Y-%m-%dT%H")
    await add_task(conn, NewTask(kind=COLLECT, body="{}", key=f"{COLLECT}.{hour}", delay=delay))


@handles_slowly(COLLECT)
@after_backups(COLLECT)
async def collect_hourly(database: Database, _body: dict[str, Any]) -> None:
    async with database.transaction() as conn:
        await schedule_collection(conn, delay=EVERY)
    await collect(database)


async def collect(database: Database) -> Collected:
    """Remove everything that nothing needs; return how much of it there was."""
    return Collected(
        uploads=await _remove_uploads(database),
        tags=await _remove_tags(database),
        manifests=await _repeat(database, _list_untagged, _remove_manifests),
        blobs=await _repeat(database, _list_unlinked, _remove_blobs),
    )


async def _remove_uploads(database: Database) -> int:
    removed = 0
    while True:
        async with database.read() as conn:
            resting = await uploads_store.list_unchanged(
                conn, before=_ago(UPLOAD_AGE), limit=_BATCH
            )
        gone = [
            upload
            for upload in resting
            if await uploads.cancel(database, upload, if_unchanged=True)
        ]
        removed += len(gone)
        # Others went on meanwhile, or another collection was faster.
        if not gone:
            return removed


async def _remove_tags(database: Database) -> int:
    removed, after = 0, ImageKey(repo_id="", path="")
    while True:
        async with database.read() as conn:
            crowded = await store.list_crowded_images(conn, after=after, limit=_BATCH)
        for image in crowded:
            async with database.transaction() as conn:
                removed += await _remove_surplus(conn, image)
        if not crowded:
            return removed
        after = crowded[-1]


async def _remove_surplus(conn: Connection, image: ImageKey) -> int:
    """Remove the tags of one image that the rule of this moment does not keep."""
    if not await store.lock_repo(conn, image.repo_id):
        return 0
    rule = await store.find_rule(conn, image.repo_id)
    if rule.keep_tags is None:
        return 0
    tags = await store.list_newest_tags(conn, image)
    subjects = filter(None, (subject_of(tag.name) for tag in tags))
    surplus = surplus_tags(
        tags, rule.keep_tags, manifests=await store.find_manifests(conn, image, subjects)
    )
    deleted = [await service.delete_tag(conn, image, tag.name) for tag in surplus]
    await _publish(conn, image.repo_id, [each for updated in deleted for each in updated])
    return len(surplus)


async def _repeat(
    database: Database,
    find: Callable[[Reader], Awaitable[list[ImageItem]]],
    remove: Callable[[Connection, str, Sequence[ImageItem]], Awaitable[int]],
) -> int:
    """Remove what is found, in one transaction for each repository, until nothing more goes."""
    removed = 0
    while True:
        async with database.read() as conn:
            found = await find(conn)
        by_repo = defaultdict(list)
        for item in found:
            by_repo[item.image.repo_id].append(item)
        before = removed
        for repo_id, items in by_repo.items():
            async with database.transaction() as conn:
                if await store.lock_repo(conn, repo_id):
                    removed += await remove(conn, repo_id, items)
        if removed == before:
            return removed


async def _list_untagged(conn: Reader) -> list[ImageItem]:
    return await store.list_untagged(conn, now=clock.micros(), limit=_BATCH)


async def _remove_manifests(conn: Connection, repo_id: str, items: Sequence[ImageItem]) -> int:
    now = clock.micros()
    gone = [item for item in items if await store.remove_untagged(conn, item, now=now)]
    await files.remove_blobs(conn, repo_id, [item.digest for item in gone])
    updated = [
        UpdatedImage(path=item.image.path, tag=None, old_digest=item.digest, new_digest=None)
        for item in gone
    ]
    await _publish(conn, repo_id, updated)
    return len(gone)


async def _list_unlinked(conn: Reader) -> list[ImageItem]:
    return await store.list_unlinked_blobs(conn, before=_ago(BLOB_AGE), limit=_BATCH)


async def _remove_blobs(conn: Connection, repo_id: str, items: Sequence[ImageItem]) -> int:
    before = _ago(BLOB_AGE)
    gone = [item for item in items if await store.remove_unlinked_blob(conn, item, before=before)]
    await files.remove_blobs(conn, repo_id, [item.digest for item in gone])
    return len(gone)


async def _publish(conn: Connection, repo_id: str, updated: Sequence[UpdatedImage]) -> None:
    repo = await repo_rows.find(conn, repo_id)
    if repo is not None:
        await service.publish_images(conn, repo, updated, actor_id=None)


def _ago(age: timedelta) -> int:
    return clock.to_micros(clock.now() - age)
