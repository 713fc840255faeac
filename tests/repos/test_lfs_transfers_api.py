"""The bytes of large files: sent whole or in parts, checked, kept or refused."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.repos import blobs_store as blobs
from hublet.repos.lfs import records, service
from people import Headers
from repos.content import object_path, sha256
from repos.git_objects import git_sha1
from repos.lfs import batch, object_requests, upload_href
from repositories import a_repo

CONTENT = b"0123456789" * 25
ODD = "This link is not valid any more; ask the batch endpoint for a new one."


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


@pytest.fixture
def parts_of_100(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything over 100 bytes goes in parts of 100."""
    monkeypatch.setattr(records, "PART_SIZE", 100)
    monkeypatch.setattr(records, "MIB", 1)
    monkeypatch.setattr(service, "PART_SIZE", 100)


def left_behind(database: Database) -> list[str]:
    """Names of all objects, and of what uploads left."""
    folder = database.hub.settings.database.data_dir
    return sorted(
        path.name
        for kind in ("blobs", "parts")
        for path in (folder / kind).rglob("*")
        if path.is_file()
    )


def kept(database: Database) -> bytes:
    return object_path(database, CONTENT).read_bytes()


async def linked(database: Database, repo_id: str) -> list[str]:
    async with database.read() as conn:
        return [blob.sha256 for blob in await blobs.list_of_repo(conn, repo_id, limit=10)]


async def test_an_object_is_kept_and_belongs_to_the_repository(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    response = await client.put(await upload_href(client, ada, CONTENT), content=CONTENT)

    assert (response.status_code, response.json()) == (200, {})
    assert kept(database) == CONTENT
    async with database.read() as conn:
        found = await blobs.find_in_repo(conn, repo_id, [sha256(CONTENT)])
    assert (found[sha256(CONTENT)].size, found[sha256(CONTENT)].git_sha1) == (
        250,
        git_sha1(CONTENT),
    )
    assert left_behind(database) == [sha256(CONTENT)]


async def test_an_object_larger_than_other_bodies_streams_in(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    piece = bytes(range(256)) * 1024
    content = piece * 12

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(12):
            yield piece

    response = await client.put(await upload_href(client, ada, content), content=pieces())

    assert response.status_code == 200
    assert await linked(database, repo_id) == [sha256(content)]


async def test_an_empty_object_is_an_object(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    response = await client.put(await upload_href(client, ada, b""), content=b"")

    assert response.status_code == 200
    assert await linked(database, repo_id) == [sha256(b"")]


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        pytest.param(
            CONTENT[:-1],
            "The upload must have 250 bytes as announced; it has 249.",
            id="too short",
        ),
        pytest.param(
            CONTENT + b"x",
            "The upload must have 250 bytes as announced; it has more.",
            id="too long",
        ),
        pytest.param(
            CONTENT[::-1],
            f"The bytes must have the SHA-256 {sha256(CONTENT)}; "
            f"they have {sha256(CONTENT[::-1])}.",
            id="other bytes",
        ),
    ],
)
async def test_of_a_wrong_upload_nothing_is_kept(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    repo_id: str,
    sent: bytes,
    sentence: str,
) -> None:
    response = await client.put(await upload_href(client, ada, CONTENT), content=sent)

    assert (response.status_code, response.json()) == (400, {"error": sentence})
    assert left_behind(database) == []
    assert await linked(database, repo_id) == []


async def test_an_upload_without_end_is_not_read_to_its_end(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    taken = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal taken
        for _ in range(1000):
            taken += 1
            yield b"x" * 100

    response = await client.put(await upload_href(client, ada, CONTENT), content=pieces())

    assert (response.status_code, taken) == (400, 3)
    assert left_behind(database) == []


def changed(href: str, **query: str) -> str:
    parts = urlsplit(href)
    return parts._replace(query=urlencode(dict(parse_qsl(parts.query)) | query)).geturl()


async def test_a_link_is_good_for_one_act_on_one_object_of_one_repository(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    other = await a_repo(client, ada, "ada/other")
    href = await upload_href(client, ada, CONTENT)
    forged = [
        changed(href, size="249"),
        changed(href, expires="99999999999"),
        changed(href, signature="0" * 64),
        changed(href, signature="é"),
        changed(href, count="1"),
        href.replace(repo_id, other),
        href.replace(sha256(CONTENT), sha256(b"other")),
        href.replace("?", "/parts/1?"),
    ]

    answers = [await client.put(each, content=CONTENT) for each in forged]
    answers += [
        await client.get(href),
        await client.post(
            href.replace("?", "/complete?"), json={"oid": sha256(CONTENT), "parts": []}
        ),
    ]

    assert [(each.status_code, each.json()) for each in answers] == [(403, {"error": ODD})] * len(
        answers
    )
    assert left_behind(database) == []


async def test_a_link_grows_old(client: httpx2.AsyncClient, ada: Headers, repo_id: str) -> None:
    href = await upload_href(client, ada, CONTENT)
    clock.move(timedelta(hours=12, seconds=1))

    response = await client.put(href, content=CONTENT)

    assert (response.status_code, response.json()) == (403, {"error": ODD})


async def test_a_deleted_repository_takes_no_uploads(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    href = await upload_href(client, ada, CONTENT)
    await client.request("DELETE", "/api/repos/delete", headers=ada, json={"name": "engine"})

    response = await client.put(href, content=CONTENT)

    assert response.status_code == 404
    assert left_behind(database) == []


async def in_parts(client: httpx2.AsyncClient, headers: Headers, content: bytes) -> dict[str, Any]:
    response = await batch(client, headers, object_requests(content))
    assert response.json()["transfer"] == "multipart"
    action: dict[str, Any] = response.json()["objects"][0]["actions"]["upload"]
    return action


async def send_parts(
    client: httpx2.AsyncClient, action: dict[str, Any], content: bytes
) -> list[dict[str, Any]]:
    """Send every part as the public client does, and return what it says at the end."""
    size, header = int(action["header"]["chunk_size"]), action["header"]
    sent = []
    for number in sorted(int(key) for key in header if key.isdigit()):
        part = content[size * (number - 1) : size * number]
        response = await client.put(header[str(number)], content=part)
        assert response.status_code == 200, response.text
        sent.append({"partNumber": number, "etag": response.headers["etag"]})
    return sent


@pytest.mark.usefixtures("parts_of_100")
async def test_a_large_object_comes_in_parts(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    action = await in_parts(client, ada, CONTENT)
    assert set(action["header"]) == {"chunk_size", "1", "2", "3"}
    parts = await send_parts(client, action, CONTENT)
    assert await linked(database, repo_id) == []

    body = {"oid": sha256(CONTENT), "parts": parts}
    responses = [await client.post(action["href"], json=body) for _ in range(2)]

    # The second is a repeat, as after an answer that was lost.
    assert [(each.status_code, each.json()) for each in responses] == [(200, {})] * 2
    assert await linked(database, repo_id) == [sha256(CONTENT)]
    assert left_behind(database) == [sha256(CONTENT)]
    assert kept(database) == CONTENT


@pytest.mark.usefixtures("parts_of_100")
async def test_a_part_may_be_sent_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    action = await in_parts(client, ada, CONTENT)
    await client.put(action["header"]["2"], content=b"x" * 100)
    parts = await send_parts(client, action, CONTENT)

    response = await client.post(action["href"], json={"oid": sha256(CONTENT), "parts": parts})

    assert response.status_code == 200
    assert await linked(database, repo_id) == [sha256(CONTENT)]


@pytest.mark.usefixtures("parts_of_100")
async def test_a_part_has_the_size_it_must_have(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    action = await in_parts(client, ada, CONTENT)

    response = await client.put(action["header"]["3"], content=b"x" * 51)

    assert (response.status_code, response.json()) == (
        400,
        {"error": "The upload must have 50 bytes as announced; it has more."},
    )


NEVER_SENT = {"partNumber": 2, "etag": f'"{"0" * 64}"'}


@pytest.mark.usefixtures("parts_of_100")
@pytest.mark.parametrize(
    ("choose", "sentence"),
    [
        pytest.param(
            lambda parts: parts[:2],
            "parts must name each of the 3 parts once, in their order.",
            id="one is missing",
        ),
        pytest.param(
            lambda parts: [parts[1], parts[0], parts[2]],
            "parts must name each of the 3 parts once, in their order.",
            id="another order",
        ),
        pytest.param(
            lambda parts: [parts[0], NEVER_SENT, parts[2]],
            "parts: part 2 with this etag was not uploaded.",
            id="one that was never sent",
        ),
        pytest.param(
            lambda parts: [parts[0], {"partNumber": 2, "etag": "../../x"}, parts[2]],
            'parts[1].etag must match ^"?[0-9A-Za-z_-]{1,128}"?$.',
            id="an etag that leads elsewhere",
        ),
    ],
)
async def test_parts_that_do_not_fit_are_refused(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    repo_id: str,
    choose: Any,
    sentence: str,
) -> None:
    action = await in_parts(client, ada, CONTENT)
    parts = await send_parts(client, action, CONTENT)

    response = await client.post(
        action["href"], json={"oid": sha256(CONTENT), "parts": choose(parts)}
    )

    assert (response.status_code, response.json()) == (400, {"error": sentence})
    assert await linked(database, repo_id) == []


@pytest.mark.usefixtures("parts_of_100")
async def test_parts_of_other_content_are_refused(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    action = await in_parts(client, ada, CONTENT)
    parts = await send_parts(client, action, CONTENT[::-1])

    other = await client.post(action["href"], json={"oid": sha256(b"x"), "parts": parts})
    response = await client.post(action["href"], json={"oid": sha256(CONTENT), "parts": parts})

    assert other.json() == {"error": "oid must be the object that this link is for."}
    assert response.status_code == 400
    assert response.json()["error"].startswith("The bytes must have the SHA-256")
    assert await linked(database, repo_id) == []


@pytest.mark.usefixtures("parts_of_100")
async def test_who_knows_no_parts_sends_the_whole(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    response = await batch(client, ada, object_requests(CONTENT), transfers=["basic"])

    assert response.json()["transfer"] == "basic"
    assert "header" not in response.json()["objects"][0]["actions"]["upload"]


@pytest.mark.parametrize(
    ("size", "count", "part"),
    [
        (1, 1, 64 << 20),
        (64 << 20, 1, 64 << 20),
        ((64 << 20) + 1, 2, 64 << 20),
        (1000 * (64 << 20), 1000, 64 << 20),
        (1000 * (64 << 20) + 1, 985, 65 << 20),
    ],
)
def test_parts_are_as_many_as_needed_and_never_too_many(size: int, count: int, part: int) -> None:
    sizes = records.part_sizes(size)

    assert (len(sizes), records.part_size_of(size), sum(sizes)) == (count, part, size)
    assert max(sizes) <= part
