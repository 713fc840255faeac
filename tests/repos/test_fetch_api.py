"""What git hears when it asks: refs, objects, and who may have them."""

import asyncio
import gzip
import os
import shutil
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import httpx2
import pytest

import hublet
from hublet.core.database import Database
from hublet.repos.errors import GitBusy
from hublet.repos.git import process
from hublet.repos.push import fetch, routes
from hublet.repos.push.fetch import GitSlots
from hublet.repos.push.wire import spool_body
from hublet.repos.records import Gated, Repo
from patience import SOON_SECONDS
from people import Headers, a_token, sign_in
from repos.pushes import MAIN, a_repo, folder_of, line, push_body

FETCH, PUSH = "git-upload-pack", "git-receive-pack"
NEEDED = (
    "There is no such repository, or it needs a token: "
    "give the token as the password, with any user name.\n"
)
RESULT = "application/x-git-upload-pack-result"


async def discover(
    client: httpx2.AsyncClient, headers: Headers, path: str, service: str = FETCH
) -> httpx2.Response:
    return await client.get(f"/{path}/info/refs", headers=headers, params={"service": service})


@pytest.fixture
async def repo(client: httpx2.AsyncClient, database: Database, ada: Headers) -> Repo:
    return await a_repo(client, database, ada)


async def add_ref(client: httpx2.AsyncClient, headers: Headers, repo: Repo, name: str) -> None:
    body = push_body((name, None, repo.head_sha))
    pushed = await client.post("/ada/engine/git-receive-pack", headers=headers, content=body)
    assert pushed.status_code == 200


async def test_who_pushes_hears_where_the_refs_are(
    client: httpx2.AsyncClient, ada: Headers, repo: Repo
) -> None:
    await add_ref(client, ada, repo, "refs/tags/v1")

    response = await discover(client, ada, "ada/engine.git", PUSH)

    assert response.headers["content-type"] == "application/x-git-receive-pack-advertisement"
    assert response.headers["cache-control"] == "no-store"
    abilities = (
        "report-status delete-refs side-band-64k quiet atomic ofs-delta object-format=sha1 "
        f"agent=hublet/{hublet.__version__}"
    )
    assert response.content == (
        line("# service=git-receive-pack\n") + b"0000"
        + line(f"{repo.head_sha} {MAIN}\0{abilities}\n")
        + line(f"{repo.head_sha} refs/tags/v1\n") + b"0000"
    )  # fmt: skip


async def test_who_fetches_hears_where_the_refs_are(
    client: httpx2.AsyncClient, ada: Headers, repo: Repo
) -> None:
    before = await discover(client, {}, "ada/engine")
    await add_ref(client, ada, repo, "refs/heads/a")
    after = await discover(client, {}, "ada/engine")

    assert before.headers["content-type"] == "application/x-git-upload-pack-advertisement"
    assert before.content.startswith(line("# service=git-upload-pack\n") + b"0000")
    assert f"{repo.head_sha} HEAD\0".encode() in before.content
    assert b"symref=HEAD:refs/heads/main" in before.content
    assert line(f"{repo.head_sha} refs/heads/a\n") not in before.content
    assert line(f"{repo.head_sha} refs/heads/a\n") in after.content


async def test_the_newest_protocol_is_spoken_when_asked_for(
    client: httpx2.AsyncClient, repo: Repo
) -> None:
    newest = await discover(client, {"Git-Protocol": "version=2"}, "ada/engine")
    strange = await discover(client, {"Git-Protocol": "version=2 $(id)"}, "ada/engine")

    assert newest.content.startswith(line("version 2\n"))
    assert strange.content.startswith(line("# service=git-upload-pack\n"))


def clone_request(sha: str) -> bytes:
    return line(f"want {sha} ofs-delta\n") + b"0000" + line("done\n")


async def ask(client: httpx2.AsyncClient, body: bytes, **headers: str) -> httpx2.Response:
    return await client.post("/ada/engine/git-upload-pack", headers=headers, content=body)


async def test_a_fetch_gets_the_objects(client: httpx2.AsyncClient, repo: Repo) -> None:
    question = clone_request(str(repo.head_sha))

    plain = await ask(client, question)
    packed = await ask(client, gzip.compress(question), **{"Content-Encoding": "gzip"})

    assert plain.status_code == packed.status_code == 200
    assert plain.headers["content-type"] == packed.headers["content-type"] == RESULT
    # A commit, its tree and .gitattributes.
    pack = b"0008NAK\nPACK\x00\x00\x00\x02\x00\x00\x00\x03"
    assert plain.content.startswith(pack)
    assert packed.content == plain.content


async def test_git_itself_answers_what_it_does_not_understand(
    client: httpx2.AsyncClient, repo: Repo
) -> None:
    response = await ask(client, line(f"want {'1' * 40}\n") + b"0000" + line("done\n"))

    assert response.status_code == 200
    assert response.content == line(f"ERR upload-pack: not our ref {'1' * 40}")


async def test_a_question_is_held_to_a_limit(
    client: httpx2.AsyncClient, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "LARGEST_FETCH_REQUEST", 10)

    response = await ask(client, b"0" * 11)

    assert response.status_code == 413
    assert response.text == "A request of git's must have at most 10 bytes.\n"


async def test_an_unknown_packing_is_refused(client: httpx2.AsyncClient, repo: Repo) -> None:
    response = await ask(client, b"0000", **{"Content-Encoding": "br"})

    assert response.status_code == 400
    assert response.text == "This is no request of git's: its Content-Encoding is gzip or none.\n"


@pytest.mark.parametrize("query", ["", "?service=git-archive"])
async def test_a_service_must_be_named(client: httpx2.AsyncClient, repo: Repo, query: str) -> None:
    response = await client.get(f"/ada/engine/info/refs{query}")

    assert response.status_code == 400
    assert "service" in response.json()["error"]


@pytest.mark.parametrize("type_", ["dataset", "space", "kernel"])
async def test_other_types_lie_under_their_word(
    client: httpx2.AsyncClient, database: Database, ada: Headers, type_: str
) -> None:
    sdk = {"sdk": "static"} if type_ == "space" else {}
    await a_repo(client, database, ada, type=type_, **sdk)

    found = await discover(client, ada, f"{type_}s/ada/engine")
    as_model = await discover(client, ada, "ada/engine")

    assert (found.status_code, as_model.status_code) == (200, 404)


@pytest.mark.parametrize("type_", ["bucket", "container"])
async def test_types_without_git_have_none(
    client: httpx2.AsyncClient, database: Database, ada: Headers, type_: str
) -> None:
    await a_repo(client, database, ada, type=type_)

    assert (await discover(client, ada, f"{type_}s/ada/engine")).status_code == 404


async def test_a_private_repository_and_none_look_the_same_to_strangers(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, database, ada, visibility="private")
    bob = await sign_in(database, "bob")

    for path in ("ada/engine", "ada/nothing"):
        anonymous = await discover(client, {}, path)
        stranger = await discover(client, bob, path)

        assert (anonymous.status_code, anonymous.text) == (401, NEEDED)
        assert anonymous.headers["www-authenticate"] == 'Basic realm="hublet"'
        assert anonymous.headers["content-type"] == "text/plain; charset=utf-8"
        assert (stranger.status_code, stranger.text) == (404, "Repository not found\n")


async def test_a_token_opens_a_private_repository_as_a_password(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, database, ada, visibility="private")
    token = await a_token(database, "ada")
    basic = {"Authorization": f"Basic {b64encode(f'ada:{token}'.encode()).decode()}"}
    wrong = {"Authorization": f"Basic {b64encode(b'ada:hf_wrong').decode()}"}

    opened = await discover(client, basic, "ada/engine")
    refused = await discover(client, wrong, "ada/engine")

    assert opened.status_code == 200
    assert (refused.status_code, refused.text) == (
        401,
        "Invalid credentials in Authorization header\n",
    )


async def test_what_needs_a_token_challenges_also_when_objects_are_asked_for(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo = await a_repo(client, database, ada, visibility="private")

    response = await ask(client, clone_request(str(repo.head_sha)))

    assert (response.status_code, response.text) == (401, NEEDED)


async def test_a_gated_repository_challenges_and_then_says_what_to_do(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo: Repo
) -> None:
    async with database.transaction() as conn:
        await conn.execute("UPDATE repos SET gated = $1 WHERE id = $2", Gated.manual, repo.id)
    bob = await sign_in(database, "bob")

    anonymous = await discover(client, {}, "ada/engine")
    stranger = await discover(client, bob, "ada/engine")
    owner = await discover(client, ada, "ada/engine")

    assert anonymous.status_code == 401
    assert (stranger.status_code, stranger.text) == (
        403,
        (
            "Access to model ada/engine is restricted and you are not in the authorized list: "
            "ask for access on its page; its owner decides.\n"
        ),
    )
    assert owner.status_code == 200


async def test_pushing_to_a_public_repository_needs_a_token(
    client: httpx2.AsyncClient, repo: Repo
) -> None:
    response = await discover(client, {}, "ada/engine", PUSH)

    assert (response.status_code, response.text) == (401, NEEDED)


async def test_a_moved_repository_leads_to_its_new_address(
    client: httpx2.AsyncClient, ada: Headers, repo: Repo
) -> None:
    body = {"fromRepo": "ada/engine", "toRepo": "ada/motor", "type": "model"}
    await client.post("/api/repos/move", headers=ada, json=body)

    response = await discover(client, {}, "ada/engine.git")

    assert response.status_code == 307
    where = "/ada/motor.git/info/refs?service=git-upload-pack"
    assert response.headers["location"] == where


async def nothing() -> AsyncIterator[bytes]:
    yield b""


async def test_who_stops_listening_ends_git(
    database: Database, repo: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slots = GitSlots(most=1)
    number = tmp_path / "number"
    endless = ["/bin/sh", "-c", f"echo $$ > {number}; exec yes"]
    monkeypatch.setattr(process, "command", lambda *_: endless)

    requested = await spool_body(nothing())
    pieces = fetch.stream_pack(slots, folder_of(database, repo), requested, protocol=None)
    async with asyncio.timeout(SOON_SECONDS), aclosing(pieces):
        first = await anext(pieces)

    assert first.startswith(b"y\n")
    with pytest.raises(ProcessLookupError):
        os.kill(int(number.read_text()), 0)
    async with slots.one():
        pass


async def test_git_does_not_run_for_ever(
    database: Database, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LONGEST_SECONDS", 0.05)
    monkeypatch.setattr(process, "command", lambda *_: ["/bin/sh", "-c", "exec sleep 60"])

    requested = await spool_body(nothing())
    pieces = fetch.stream_pack(GitSlots(), folder_of(database, repo), requested, protocol=None)

    assert [piece async for piece in pieces] == []


async def test_a_hub_without_git_says_so(
    client: httpx2.AsyncClient, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.program.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda _: None)

    response = await discover(client, {}, "ada/engine")

    assert response.status_code == 503
    assert response.text == "This hub cannot run git; its operator has to install it.\n"


async def test_git_knows_nothing_of_whoever_runs_the_hub(
    client: httpx2.AsyncClient, repo: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".gitconfig").write_text("[uploadpack]\n\thideRefs = refs/heads\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", str(tmp_path))

    response = await discover(client, {}, "ada/engine")

    assert line(f"{repo.head_sha} {MAIN}\n") in response.content


async def test_a_repository_that_is_just_being_deleted_is_not_found(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo: Repo
) -> None:
    shutil.rmtree(folder_of(database, repo))

    fetched = await discover(client, {}, "ada/engine")
    body = push_body(("refs/heads/a", None, repo.head_sha))
    pushed = await client.post("/ada/engine/git-receive-pack", headers=ada, content=body)

    answers = [(answer.status_code, answer.text) for answer in (fetched, pushed)]
    assert answers == [(404, "The repository was deleted a moment ago.\n")] * 2


async def test_a_repository_that_is_broken_on_the_disk_is_no_crash(
    client: httpx2.AsyncClient, database: Database, repo: Repo
) -> None:
    folder = folder_of(database, repo)
    await discover(client, {}, "ada/engine")
    kept = (folder / "packed-refs").read_bytes()
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "packed-refs").write_bytes(kept)

    response = await discover(client, {}, "ada/engine")

    assert response.status_code == 503
    assert response.text == (
        "Git could not read this repository; try again, or tell the operator.\n"
    )


async def test_no_slot_becomes_free_and_the_client_is_asked_to_come_back() -> None:
    slots = GitSlots(most=1, patience_seconds=0.01)

    async with slots.one():
        with pytest.raises(GitBusy, match="Too many git requests are running"):
            async with slots.one():
                pass
    async with slots.one():
        pass
