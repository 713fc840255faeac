"""Comments under papers, posts and blogs: the same rules for all three."""

from typing import Any

import httpx2
import pytest

from account_responses import pages_of
from community.public_threads import KINDS, a_comment, a_thread, author_card
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from hublet.events import CommentCreated, CommentUpdated
from hublet.tokens import service as tokens
from hublet.tokens.records import Grants, Scope, ScopedGrant, TokenRole
from outbox_events import published_events
from people import Headers, a_user, sign_in

HIDDEN = "This comment has been hidden."

pytestmark = pytest.mark.parametrize("kind", KINDS)


async def listed(client: httpx2.AsyncClient, address: str) -> list[dict[str, Any]]:
    comments: list[dict[str, Any]] = (await client.get(f"{address}/comments")).json()
    return comments


async def test_a_comment_is_what_the_clients_read(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    bob = await sign_in(database, "bob")
    address = await a_thread(client, ada, kind)

    text = "I agree, <b>@ada</b>.\nReally.\n\nSo."
    response = await client.post(f"{address}/comment", headers=bob, json={"comment": text})

    assert response.status_code == 200
    author = author_card(await a_user(database, "bob"))
    comment = response.json()["newMessage"]
    assert response.json() == {
        "newMessage": {
            "id": comment["id"],
            "type": "comment",
            "createdAt": comment["createdAt"],
            "author": author,
            "data": {
                "edited": False,
                "hidden": False,
                "latest": {
                    "raw": text,
                    "html": "<p>I agree, &lt;b&gt;@ada&lt;/b&gt;.<br>\nReally.</p>\n<p>So.</p>",
                    "updatedAt": comment["createdAt"],
                    "author": author,
                },
                "reactions": [],
            },
        }
    }
    assert await listed(client, address) == [comment]
    assert (await client.get(address)).json()["numComments"] == 1


async def test_a_comment_is_a_fact_with_whom_it_mentions(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    address = await a_thread(client, ada, kind)
    bob = await a_user(database, "bob")

    comment_id = await a_comment(client, ada, address, "Ask @bob, not @ada or @nobody.")

    user = await a_user(database, "ada")
    (fact,) = await published_events(database, CommentCreated)
    assert fact["comment"] == {
        "id": comment_id,
        "author_id": user.id,
        "hidden": False,
        "content": "Ask @bob, not @ada or @nobody.",
        "parent_id": None,
    }
    assert (fact["thread"]["kind"], fact["actor_id"]) == (kind, user.id)
    assert fact["mentioned_ids"] == [bob.id]


async def test_comments_are_listed_oldest_first_page_by_page(
    client: httpx2.AsyncClient, ada: Headers, kind: str
) -> None:
    address = await a_thread(client, ada, kind)
    ids = [await a_comment(client, ada, address, text) for text in ("one", "two", "three")]

    assert await pages_of(client, f"{address}/comments?limit=2", "id") == [ids[:2], ids[2:]]


async def test_a_reply_names_the_comment_it_answers(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    address = await a_thread(client, ada, kind)
    parent = await a_comment(client, ada, address)

    response = await client.post(
        f"{address}/comment/{parent}/reply", headers=ada, json={"comment": "So do I."}
    )

    assert response.status_code == 200
    reply = response.json()["newMessage"]
    assert (reply["data"]["parentCommentId"], reply["data"]["latest"]["raw"]) == (
        parent,
        "So do I.",
    )
    assert (await listed(client, address))[1] == reply
    assert (await published_events(database, CommentCreated))[1]["comment"]["parent_id"] == parent


async def test_a_reply_needs_a_comment_of_the_same_thread(
    client: httpx2.AsyncClient, ada: Headers, kind: str
) -> None:
    address = await a_thread(client, ada, kind)
    other = await a_thread(client, ada, "post", text="Another one.")
    elsewhere = await a_comment(client, ada, other)

    for comment_id in (elsewhere, "0" * 24, "nonsense"):
        for action, body in (("reply", {"comment": "x"}), ("edit", {"content": "x"}), ("hide", {})):
            path = f"{address}/comment/{comment_id}/{action}"
            response = await client.post(path, headers=ada, json=body)
            assert (response.status_code, response.json()) == (
                404,
                {"error": f"There is no comment {comment_id} in this thread."},
            )


async def test_a_hidden_comment_cannot_be_answered_or_edited(
    client: httpx2.AsyncClient, ada: Headers, kind: str
) -> None:
    address = await a_thread(client, ada, kind)
    path = f"{address}/comment/{await a_comment(client, ada, address)}"
    await client.post(f"{path}/hide", headers=ada)

    replied = await client.post(f"{path}/reply", headers=ada, json={"comment": "But why?"})
    edited = await client.post(f"{path}/edit", headers=ada, json={"content": "Because."})

    assert (replied.status_code, replied.json()) == (
        409,
        {"error": "This comment is hidden: it cannot be answered any more."},
    )
    assert (edited.status_code, edited.json()) == (
        409,
        {"error": "This comment is hidden: it cannot be edited any more."},
    )
    assert len(await listed(client, address)) == 1


async def test_an_edited_comment_shows_its_new_text(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    address = await a_thread(client, ada, kind)
    comment_id = await a_comment(client, ada, address, "I agree, @ada.")
    bob = await a_user(database, "bob")
    (before,) = await listed(client, address)

    path = f"{address}/comment/{comment_id}/edit"
    response = await client.post(path, headers=ada, json={"content": "Ask @bob and @ada."})

    assert response.status_code == 200
    comment = response.json()["updatedComment"]
    assert (comment["data"]["edited"], comment["data"]["hidden"]) == (True, False)
    assert comment["data"]["latest"]["raw"] == "Ask @bob and @ada."
    assert comment["data"]["latest"]["updatedAt"] >= before["createdAt"]
    assert {**comment, "data": None} == {**before, "data": None}
    assert await listed(client, address) == [comment]
    (fact,) = await published_events(database, CommentUpdated)
    assert (fact["comment"]["content"], fact["mentioned_ids"]) == ("Ask @bob and @ada.", [bob.id])


async def test_an_edit_that_changes_nothing_is_no_fact(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    address = await a_thread(client, ada, kind)
    path = f"{address}/comment/{await a_comment(client, ada, address, 'Same.')}/edit"

    response = await client.post(path, headers=ada, json={"content": "Same."})

    assert response.json() == {"updatedComment": (await listed(client, address))[0]}
    assert not response.json()["updatedComment"]["data"]["edited"]
    assert await published_events(database, CommentUpdated) == []


async def test_only_its_author_edits_a_comment(
    client: httpx2.AsyncClient, database: Database, ada: Headers, admin: Headers, kind: str
) -> None:
    bob = await sign_in(database, "bob")
    address = await a_thread(client, ada, kind)
    path = f"{address}/comment/{await a_comment(client, bob, address)}/edit"

    for headers in (ada, admin):
        response = await client.post(path, headers=headers, json={"content": "Mine now."})
        assert (response.status_code, response.json()) == (
            403,
            {"error": "You cannot edit this comment: it is somebody else's."},
        )


async def test_a_hidden_comment_loses_its_text_everywhere(
    client: httpx2.AsyncClient, database: Database, ada: Headers, admin: Headers, kind: str
) -> None:
    address = await a_thread(client, ada, kind)
    comment_id = await a_comment(client, ada, address, "A first secret.")
    path = f"{address}/comment/{comment_id}"
    await client.post(f"{path}/edit", headers=ada, json={"content": "A second secret."})

    response = await client.post(f"{path}/hide", headers=admin)

    assert response.status_code == 200
    (shown,) = await listed(client, address)
    assert response.json() == {"updatedComment": shown}
    assert (shown["data"]["hidden"], shown["data"]["hiddenBy"]) == (True, "root")
    assert (shown["data"]["latest"]["raw"], shown["data"]["latest"]["html"]) == (
        HIDDEN,
        f"<p>{HIDDEN}</p>",
    )
    for answer in (response, await client.get(f"{address}/comments"), await client.get(address)):
        assert "secret" not in answer.text
    fact = (await published_events(database, CommentUpdated))[-1]
    assert (fact["comment"]["hidden"], fact["comment"]["content"]) == (True, None)


async def test_hiding_twice_is_one_fact(
    client: httpx2.AsyncClient, database: Database, ada: Headers, admin: Headers, kind: str
) -> None:
    address = await a_thread(client, ada, kind)
    path = f"{address}/comment/{await a_comment(client, ada, address)}/hide"

    first = await client.post(path, headers=ada)
    second = await client.post(path, headers=admin)

    assert second.json() == first.json()
    assert len(await published_events(database, CommentUpdated)) == 1


async def test_whose_comments_can_be_hidden(
    client: httpx2.AsyncClient, database: Database, ada: Headers, admin: Headers, kind: str
) -> None:
    bob, eve = await sign_in(database, "bob"), await sign_in(database, "eve")
    address = await a_thread(client, ada, kind)

    async def hide(headers: Headers) -> int:
        path = f"{address}/comment/{await a_comment(client, bob, address)}/hide"
        response = await client.post(path, headers=headers)
        if response.status_code == 403:
            assert response.json() == {
                "error": "You cannot hide this comment: it is somebody else's."
            }
        return response.status_code

    assert await hide(bob) == 200
    assert await hide(admin) == 200
    assert await hide(eve) == 403
    # A paper belongs to nobody here, also not to who brought it.
    assert await hide(ada) == (403 if kind == "paper" else 200)


async def test_a_narrow_token_of_an_administrator_hides_only_the_own_comments(
    client: httpx2.AsyncClient, database: Database, ada: Headers, admin: Headers, kind: str
) -> None:
    narrow = await sign_in(database, "root", scopes=["write-discussions"])
    address = await a_thread(client, ada, kind)
    others, own = [await a_comment(client, who, address) for who in (ada, narrow)]

    assert (
        await client.post(f"{address}/comment/{others}/hide", headers=narrow)
    ).status_code == 403
    assert (await client.post(f"{address}/comment/{own}/hide", headers=narrow)).status_code == 200


REFUSED = {
    "": "{field} must have at least 1 character(s).",
    "\n\t ": "{field}: must say something, blanks alone do not count.",
    "x" * 65_537: "{field} must have at most 65536 characters.",
}


async def test_a_comment_that_breaks_a_rule_is_refused(
    client: httpx2.AsyncClient, ada: Headers, kind: str
) -> None:
    address = await a_thread(client, ada, kind)
    comment_id = await a_comment(client, ada, address)
    fields = {"": "comment", f"/{comment_id}/reply": "comment", f"/{comment_id}/edit": "content"}

    for action, field in fields.items():
        path = f"{address}/comment{action}"
        unsaid = await client.post(path, headers=ada, json={})
        assert unsaid.json() == {"error": f"{field} is required."}
        for text, sentence in REFUSED.items():
            response = await client.post(path, headers=ada, json={field: text})
            assert (response.status_code, response.json()) == (
                400,
                {"error": sentence.format(field=field)},
            )
    assert len(await listed(client, address)) == 1


async def test_the_longest_comment_is_taken(
    client: httpx2.AsyncClient, ada: Headers, kind: str
) -> None:
    address = await a_thread(client, ada, kind)

    await a_comment(client, ada, address, "x" * 65_536)

    assert len((await listed(client, address))[0]["data"]["latest"]["raw"]) == 65_536


async def test_commenting_needs_its_scope(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    address = await a_thread(client, ada, kind)
    path = f"{address}/comment"
    reader = await sign_in(database, "bob", role=TokenRole.read)
    writer = await sign_in(database, "bob", scopes=["write-discussions"])

    refused = await client.post(path, headers=reader, json={"comment": "x"})

    assert (refused.status_code, refused.json()) == (
        403,
        {"error": "The token lacks the scope write-discussions."},
    )
    assert (await client.post(path, json={"comment": "x"})).status_code == 401
    assert (await client.post(path, headers=writer, json={"comment": "x"})).status_code == 200


async def test_a_scope_for_one_account_reaches_only_its_threads(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    user, bob = await a_user(database, "ada"), await a_user(database, "bob")
    grant = ScopedGrant(
        entity_id=user.id,
        entity_type="user",
        entity_name="ada",
        scopes=frozenset({Scope.write_discussions}),
    )
    async with database.transaction() as conn:
        _, value = await tokens.issue(
            conn,
            user_id=bob.id,
            name="narrow",
            role=TokenRole.fine_grained,
            grants=Grants(scoped=(grant,)),
        )
    narrow = {"Authorization": f"Bearer {value}"}
    own = await a_thread(client, ada, kind)
    other = await a_thread(client, await sign_in(database, "eve"), "post")

    async def comment(address: str) -> int:
        path = f"{address}/comment"
        return (await client.post(path, headers=narrow, json={"comment": "x"})).status_code

    # A paper belongs to no account.
    assert await comment(own) == (403 if kind == "paper" else 200)
    assert await comment(other) == 403
    if kind == "paper":
        assert (await client.post(f"{own}/upvote", headers=narrow)).status_code == 403


async def test_what_is_not_there_cannot_be_commented_on(
    client: httpx2.AsyncClient, ada: Headers, kind: str
) -> None:
    address = await a_thread(client, ada, kind)
    missing = f"{address}0"

    for path in (f"{missing}/comment", f"{missing}/mute"):
        response = await client.post(path, headers=ada, json={"comment": "x"})
        assert response.status_code == 404
        assert response.json()["error"].startswith(f"There is no {kind} ")


async def test_the_comments_of_a_disabled_user_stay_readable(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    bob = await sign_in(database, "bob")
    address = await a_thread(client, ada, kind)
    await a_comment(client, bob, address)
    before = await listed(client, address)
    async with database.transaction() as conn:
        await accounts.disable_user(conn, await accounts.get_user(conn, "bob"))

    assert await listed(client, address) == before
    assert (await client.post(f"{address}/comment", headers=bob, json={"comment": "x"})).is_error
