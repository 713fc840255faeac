"""Retention of images: the rule of a repository, and which tags go by it."""

import re
from collections.abc import Collection, Sequence

from hublet.core.database import Connection, Reader
from hublet.registry import collection_store as store
from hublet.registry.errors import InvalidRetention
from hublet.registry.records import RetentionRule, Tag
from hublet.repos import service as repos
from hublet.repos.records import Repo
from hublet.tokens.records import Caller

MAX_KEEP_TAGS = 10_000
MAX_UNTAGGED_DAYS = 3650

# Clients that know no referrers put what is about a manifest under such a tag: its list of
# referrers, or a signature (`sha256-….sig`).
_TAG_OF_REFERRERS = re.compile(r"(sha256|sha512)-([0-9a-f]{64,128})(?:\..+)?")


async def get_rule(conn: Reader, repo: Repo) -> RetentionRule:
    return await store.find_rule(conn, repo.id)


async def set_rule(conn: Connection, caller: Caller, repo: Repo, rule: RetentionRule) -> None:
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
