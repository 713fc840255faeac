"""What several people do to one thread at the same moment."""

import asyncio

import httpx2

from community.public_threads import PAPER, a_comment, a_thread, thread_id
from hublet.community.threads import store
from hublet.core.database import Database
from people import Headers


async def test_edits_at_the_same_moment_are_all_kept(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    address = await a_thread(client, ada, "post")
    path = f"{address}/comment/{await a_comment(client, ada, address)}/edit"

    responses = await asyncio.gather(
        *(client.post(path, headers=ada, json={"content": f"Edit {n}."}) for n in range(5))
    )

    assert [response.status_code for response in responses] == [200] * 5
    async with database.read() as conn:
        (versions,) = (await store.list_revisions(conn, await thread_id(client, address))).values()
    assert len(versions) == 5


async def test_a_comment_on_what_is_being_deleted_is_kept_or_not_found(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    address = await a_thread(client, ada, "blog")
    comment = {"comment": "Still here?"}

    *commented_on, deleted = await asyncio.gather(
        *(client.post(f"{address}/comment", headers=ada, json=comment) for _ in range(4)),
        client.delete(address, headers=ada),
    )

    assert deleted.status_code == 200
    assert {response.status_code for response in commented_on} <= {200, 404}
    assert (await client.get(address)).status_code == 404


async def test_blogs_of_one_title_at_the_same_moment_get_names_of_their_own(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    body = {"title": "Notes", "content": "x"}

    responses = await asyncio.gather(
        *(client.post("/api/blog", headers=ada, json=body) for _ in range(4))
    )

    slugs = {response.json()["slug"] for response in responses}
    assert slugs == {"notes", "notes-2", "notes-3", "notes-4"}


async def test_a_paper_is_added_once_also_at_the_same_moment(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    responses = await asyncio.gather(
        *(client.post("/api/papers/index", headers=ada, json=PAPER) for _ in range(3))
    )

    assert sorted(response.status_code for response in responses) == [200, 409, 409]
