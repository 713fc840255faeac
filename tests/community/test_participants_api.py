"""Who takes part in a thread: opened, commented, changed, mentioned."""

import httpx2
import pytest

from community.public_threads import KINDS, a_comment, a_thread, thread_id
from hublet.accounts.users import service as accounts
from hublet.community.threads import store
from hublet.core.database import Database
from people import Headers, a_user, sign_in


async def participants(
    client: httpx2.AsyncClient, database: Database, address: str
) -> dict[str, set[str]]:
    """Return by name how somebody has to do with the thread at this address."""
    thread = await thread_id(client, address)
    async with database.read() as conn:
        return {
            (await accounts.get_user_by_id(conn, found.user_id)).name: set(found.parts)
            for found in await store.list_participants(conn, thread)
        }


@pytest.mark.parametrize("kind", KINDS)
async def test_who_opens_a_thread_and_who_is_mentioned_take_part(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    await a_user(database, "bob")

    address = await a_thread(client, ada, kind, text="Look at this, @Bob. Yours, @ada.")

    assert await participants(client, database, address) == {
        "ada": {"opened"},
        "bob": {"mentioned"},
    }


@pytest.mark.parametrize("kind", KINDS)
async def test_who_comments_and_who_is_mentioned_there_take_part(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    bob = await sign_in(database, "bob")
    for name in ("eve", "grace"):
        await a_user(database, name)
    address = await a_thread(client, ada, kind)

    comment_id = await a_comment(client, bob, address, "Ask @eve and `@mallory`.")
    path = f"{address}/comment/{comment_id}"
    await client.post(f"{path}/reply", headers=ada, json={"comment": "I asked @bob."})
    await client.post(f"{path}/edit", headers=bob, json={"content": "Ask @grace."})

    # A mention sticks, also when the text that held it is gone.
    assert await participants(client, database, address) == {
        "ada": {"opened", "commented"},
        "bob": {"commented", "mentioned"},
        "eve": {"mentioned"},
        "grace": {"mentioned"},
    }


@pytest.mark.parametrize("kind", KINDS)
async def test_who_cannot_log_in_is_not_mentioned(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    bob = await a_user(database, "bob")
    async with database.transaction() as conn:
        await accounts.disable_user(conn, bob)

    address = await a_thread(client, ada, kind, text="Look at this, @bob.")

    assert await participants(client, database, address) == {"ada": {"opened"}}


async def test_who_changes_a_blog_takes_part(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    address = await a_thread(client, ada, "blog")

    await client.patch(address, headers=ada, json={"title": "Another title"})

    assert await participants(client, database, address) == {"ada": {"opened", "changed"}}


async def test_a_paper_somebody_is_said_to_submit_is_opened_by_them(
    client: httpx2.AsyncClient, database: Database, admin: Headers
) -> None:
    await a_user(database, "bob")
    body = {"arxivId": "2401.00001", "title": "Notes", "summary": "x", "authors": ["Ada"]}
    await client.post("/api/papers/index", headers=admin, json=body | {"submittedBy": "bob"})

    assert await participants(client, database, "/api/papers/2401.00001") == {"bob": {"opened"}}
