"""Users by the thousand, and something they can hear of."""

from dataclasses import dataclass

from hublet.core.clock import micros
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.events import CommentCreated, CommentSnapshot, RepoSnapshot, ThreadSnapshot


async def add_users(database: Database, name: str, count: int) -> list[str]:
    """Add users called name-0, name-1 and so on; return their ids, which grow."""
    ids, now = [new_object_id() for _ in range(count)], micros()
    named = [(each, f"{name}-{number}") for number, each in enumerate(ids)]
    async with database.transaction() as conn:
        await conn.execute_many(
            "INSERT INTO names (key, account_id, type) VALUES ($1, $2, 'user')",
            [(full, each) for each, full in named],
        )
        await conn.execute_many(
            """
            INSERT INTO users (id, name, fullname, type, is_admin, created_at)
            VALUES ($1, $2, $2, 'user', FALSE, $3)
            """,
            [(each, full, now) for each, full in named],
        )
    return ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Discussion:
    """A discussion in a public repository, and that somebody said something in it."""

    repo_id: str
    thread_id: str
    event: CommentCreated


async def create_discussion(database: Database, owner_id: str, number: int) -> Discussion:
    """Open the discussion of a repository of its own."""
    repo_id, thread_id, now = new_object_id(), new_object_id(), micros()
    async with database.transaction() as conn:
        await conn.execute(
            """
            INSERT INTO repos
                (id, type, owner_id, name, name_key, visibility, creator_id, tags, created_at,
                 updated_at)
            VALUES ($1, 'model', $2, $3, $3, 'public', $2, '[]', $4, $4)
            """,
            repo_id, owner_id, f"talk-{number}", now,
        )  # fmt: skip
        await conn.execute(
            """
            INSERT INTO threads
                (id, kind, title, author_id, repo_id, number, status, created_at, updated_at)
            VALUES ($1, 'discussion', 'What do you think of it?', $2, $3, 1, 'open', $4, $4)
            """,
            thread_id, owner_id, repo_id, now,
        )  # fmt: skip
    repo = RepoSnapshot(
        id=repo_id, type="model", name=f"ada/talk-{number}", owner_id=owner_id, private=False
    )
    thread = ThreadSnapshot(
        id=thread_id, kind="discussion", title="What do you think of it?", repo=repo, number=1
    )
    comment = CommentSnapshot(id=new_object_id(), author_id=owner_id, content="It turns well.")
    event = CommentCreated(thread=thread, comment=comment, actor_id=owner_id)
    return Discussion(repo_id=repo_id, thread_id=thread_id, event=event)


async def watch(database: Database, user_ids: list[str], *, repo_id: str) -> None:
    now = micros()
    async with database.transaction() as conn:
        await conn.execute_many(
            "INSERT INTO watches (user_id, type, target_id, since) VALUES ($1, 'repo', $2, $3)",
            [(user_id, repo_id, now) for user_id in user_ids],
        )
