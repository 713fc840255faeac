"""Uploads of blobs over HTTP: whole, in chunks, as a stream, resumed, refused, given up."""

import os
from collections.abc import AsyncIterator

import httpx2
import pytest

from hublet.core.database import Database
from hublet.repos import pruning
from people import Headers, sign_in
from registry.images import IMAGE, begin, code_of, digest_of, push_blob

CONTENT = bytes(range(256)) * 40
OCTETS = {"Content-Type": "application/octet-stream"}


async def pull(client: httpx2.AsyncClient, who: Headers, digest: str) -> bytes:
    response = await client.get(f"{IMAGE}/blobs/{digest}", headers=who)
    assert response.status_code == 200
    assert response.headers["Docker-Content-Digest"] == digest
    return response.content


def check_stored(response: httpx2.Response, digest: str) -> None:
    assert response.status_code == 201, response.text
    assert response.headers["Location"] == f"{IMAGE}/blobs/{digest}"
    assert response.headers["Docker-Content-Digest"] == digest


def left_over(database: Database) -> list[str]:
    """Return the files of uploads that are not complete."""
    folder = database.hub.settings.database.data_dir
    found = [*folder.glob("parts/*/*/*"), *folder.glob("blobs/incoming/*")]
    return [path.name for path in found]


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
async def test_a_blob_comes_with_one_request(
    client: httpx2.AsyncClient, ada: Headers, algorithm: str
) -> None:
    digest = digest_of(CONTENT, algorithm)

    response = await client.post(
        f"{IMAGE}/blobs/uploads/", params={"digest": digest}, content=CONTENT, headers=ada
    )

    check_stored(response, digest)
    assert await pull(client, ada, digest) == CONTENT


async def test_an_upload_begins_empty(client: httpx2.AsyncClient, ada: Headers) -> None:
    response = await client.post(f"{IMAGE}/blobs/uploads/", headers=ada)

    assert response.status_code == 202
    location = response.headers["Location"]
    assert location == f"{IMAGE}/blobs/uploads/{response.headers['Docker-Upload-UUID']}"
    assert "digest" not in location
    assert response.headers["Range"] == "0-0"
    assert await begin(client, ada) != location


@pytest.mark.parametrize("content", [CONTENT, b"", b"{}"])
@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
async def test_a_blob_comes_with_the_request_that_ends_the_upload(
    client: httpx2.AsyncClient, ada: Headers, algorithm: str, content: bytes
) -> None:
    location, digest = await begin(client, ada), digest_of(content, algorithm)

    response = await client.put(
        location, params={"digest": digest}, content=content, headers=ada | OCTETS
    )

    check_stored(response, digest)
    assert await pull(client, ada, digest) == content
    assert (await client.get(location, headers=ada)).status_code == 404


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
@pytest.mark.parametrize("last", [b"", b"the rest"])
async def test_a_blob_comes_in_chunks(
    client: httpx2.AsyncClient, ada: Headers, database: Database, algorithm: str, last: bytes
) -> None:
    location, digest = await begin(client, ada), digest_of(CONTENT + last, algorithm)
    for start in range(0, len(CONTENT), 4000):
        chunk = CONTENT[start : start + 4000]
        end = start + len(chunk) - 1
        response = await client.patch(
            location,
            content=chunk,
            headers=ada | OCTETS | {"Content-Range": f"{start}-{end}"},
        )
        assert response.status_code == 202
        assert response.headers["Range"] == f"0-{end}"
        location = response.headers["Location"]
    more = {"Content-Range": f"{len(CONTENT)}-{len(CONTENT + last) - 1}"} if last else {}

    response = await client.put(
        location, params={"digest": digest}, content=last, headers=ada | more
    )

    check_stored(response, digest)
    assert await pull(client, ada, digest) == CONTENT + last
    assert left_over(database) == []


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
async def test_a_blob_comes_as_one_stream_of_unknown_length(
    client: httpx2.AsyncClient, ada: Headers, database: Database, algorithm: str
) -> None:
    async def stream() -> AsyncIterator[bytes]:
        for start in range(0, len(CONTENT), 999):
            yield CONTENT[start : start + 999]

    location, digest = await begin(client, ada), digest_of(CONTENT, algorithm)

    sent = await client.patch(location, content=stream(), headers=ada)
    response = await client.put(sent.headers["Location"] + f"?digest={digest}", headers=ada)

    assert sent.status_code == 202
    assert sent.headers["Range"] == f"0-{len(CONTENT) - 1}"
    check_stored(response, digest)
    assert await pull(client, ada, digest) == CONTENT
    assert left_over(database) == []


async def test_a_second_stream_is_appended(client: httpx2.AsyncClient, ada: Headers) -> None:
    location = await begin(client, ada)

    await client.patch(location, content=b"one ", headers=ada)
    second = await client.patch(location, content=b"two", headers=ada)
    digest = digest_of(b"one two")
    response = await client.put(location, params={"digest": digest}, headers=ada)

    assert second.headers["Range"] == "0-6"
    check_stored(response, digest)


async def test_chunks_out_of_order_are_refused_and_the_upload_goes_on(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    location, digest = await begin(client, ada), digest_of(b"abcdef")
    await client.patch(location, content=b"abc", headers=ada | {"Content-Range": "0-2"})

    for content_range in ("0-2", "4-6", "2-4"):
        refused = await client.patch(
            location, content=b"xyz", headers=ada | {"Content-Range": content_range}
        )
        assert (refused.status_code, code_of(refused)) == (416, "RANGE_INVALID")
        assert refused.headers["Range"] == "0-2"
    asked = await client.get(f"{location}?digest={digest}", headers=ada)
    assert asked.status_code == 204
    assert asked.headers["Range"] == "0-2"
    assert asked.headers["Location"] == location
    late = await client.put(
        location,
        params={"digest": digest},
        content=b"def",
        headers=ada | {"Content-Range": "9-11"},
    )
    assert late.status_code == 416
    response = await client.put(
        location, params={"digest": digest}, content=b"def", headers=ada | {"Content-Range": "3-5"}
    )
    check_stored(response, digest)


@pytest.mark.parametrize("content_range", ["0-9", "0-1", "0-0"])
async def test_a_chunk_has_as_many_bytes_as_it_says(
    client: httpx2.AsyncClient, ada: Headers, database: Database, content_range: str
) -> None:
    location = await begin(client, ada)

    response = await client.patch(
        location, content=b"abc", headers=ada | {"Content-Range": content_range}
    )

    assert (response.status_code, code_of(response)) == (400, "SIZE_INVALID")
    assert (await client.get(location, headers=ada)).headers["Range"] == "0-0"
    assert left_over(database) == []


async def test_a_stream_that_ends_before_its_range_does_is_dropped(
    client: httpx2.AsyncClient, ada: Headers, database: Database
) -> None:
    async def stream() -> AsyncIterator[bytes]:
        yield b"abc"

    location = await begin(client, ada)

    response = await client.patch(
        location, content=stream(), headers=ada | {"Content-Range": "0-99"}
    )

    assert (response.status_code, code_of(response)) == (400, "SIZE_INVALID")
    assert left_over(database) == []


@pytest.mark.parametrize("content_range", ["abc", "3", "-3", "3-", "1-2-3", "9" * 30 + "-1"])
async def test_a_range_that_is_none_is_refused(
    client: httpx2.AsyncClient, ada: Headers, content_range: str
) -> None:
    location = await begin(client, ada)

    response = await client.patch(
        location, content=b"abc", headers=ada | {"Content-Range": content_range}
    )

    assert (response.status_code, code_of(response)) == (416, "RANGE_INVALID")


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
async def test_a_wrong_digest_is_refused_on_every_way_and_leaves_nothing(
    client: httpx2.AsyncClient, ada: Headers, database: Database, algorithm: str
) -> None:
    wrong = {"digest": digest_of(b"another", algorithm)}

    posted = await client.post(
        f"{IMAGE}/blobs/uploads/", params=wrong, content=CONTENT, headers=ada
    )
    whole = await client.put(await begin(client, ada), params=wrong, content=CONTENT, headers=ada)
    streamed_to = await begin(client, ada)
    await client.patch(streamed_to, content=CONTENT, headers=ada)
    streamed = await client.put(streamed_to, params=wrong, headers=ada)
    chunked_to = await begin(client, ada)
    await client.patch(chunked_to, content=b"a", headers=ada | {"Content-Range": "0-0"})
    await client.patch(chunked_to, content=b"b", headers=ada | {"Content-Range": "1-1"})
    chunked = await client.put(chunked_to, params=wrong, content=b"c", headers=ada)

    for response in (posted, whole, streamed, chunked):
        assert (response.status_code, code_of(response)) == (400, "DIGEST_INVALID")
    assert (await client.head(f"{IMAGE}/blobs/{wrong['digest']}", headers=ada)).status_code == 404
    assert left_over(database) == []
    assert (await client.get(streamed_to, headers=ada)).status_code == 404


@pytest.mark.parametrize(
    "digest", ["", "abc", "sha256:" + "0" * 63, "md5:" + "0" * 32, "sha256:" + "G" * 64]
)
async def test_what_is_no_digest_ends_no_upload(
    client: httpx2.AsyncClient, ada: Headers, digest: str
) -> None:
    location = await begin(client, ada)

    response = await client.put(location, params={"digest": digest}, content=b"x", headers=ada)

    assert (response.status_code, code_of(response)) == (400, "DIGEST_INVALID")
    assert (await client.get(location, headers=ada)).status_code == 204


async def test_the_algorithm_may_be_told_when_the_upload_begins(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    path = f"{IMAGE}/blobs/uploads/?digest-algorithm="

    assert (await client.post(path + "sha512", headers=ada)).status_code == 202
    unknown = await client.post(path + "md5", headers=ada)
    assert (unknown.status_code, code_of(unknown)) == (400, "DIGEST_INVALID")


async def test_an_upload_is_given_up(
    client: httpx2.AsyncClient, ada: Headers, database: Database
) -> None:
    location = await begin(client, ada)
    await client.patch(location, content=b"abc", headers=ada)

    response = await client.delete(location, headers=ada)

    assert response.status_code == 204
    assert left_over(database) == []
    again = await client.delete(location, headers=ada)
    assert (again.status_code, code_of(again)) == (404, "BLOB_UPLOAD_UNKNOWN")
    gone = await client.patch(location, content=b"abc", headers=ada)
    assert (gone.status_code, code_of(gone)) == (404, "BLOB_UPLOAD_UNKNOWN")


async def test_an_upload_belongs_to_its_user_and_its_image(
    client: httpx2.AsyncClient, ada: Headers, database: Database
) -> None:
    location = await begin(client, ada)
    upload = location.rpartition("/")[2]
    await push_blob(client, ada, b"x", image=f"{IMAGE}/gpu")
    bob = await sign_in(database, "bob")

    elsewhere = await client.get(f"{IMAGE}/gpu/blobs/uploads/{upload}", headers=ada)
    other = await client.patch(location, content=b"x", headers=bob)

    assert (elsewhere.status_code, code_of(elsewhere)) == (404, "BLOB_UPLOAD_UNKNOWN")
    assert other.status_code in {403, 404}


async def test_what_arrived_before_a_client_went_away_stays(
    client: httpx2.AsyncClient, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hublet.registry import blob_routes  # noqa: PLC0415
    from hublet.registry.uploads import BodyBroken  # noqa: PLC0415

    location, digest = await begin(client, ada), digest_of(b"abcdef")

    async def broken_body(_: object, **_given: object) -> AsyncIterator[bytes]:
        yield b"abc"
        raise BodyBroken

    with monkeypatch.context() as patch:
        patch.setattr(blob_routes, "RequestBody", broken_body)
        await client.patch(location, content=b"abcdef", headers=ada)
        ended = await client.put(location, params={"digest": digest}, content=b"x", headers=ada)
    asked = await client.get(location, headers=ada)

    assert (ended.status_code, code_of(ended)) == (400, "SIZE_INVALID")
    assert asked.headers["Range"] == "0-2"
    rest = await client.put(location, params={"digest": digest}, content=b"def", headers=ada)
    check_stored(rest, digest)


async def test_an_upload_that_goes_on_for_days_keeps_its_parts(
    client: httpx2.AsyncClient, ada: Headers, database: Database
) -> None:
    location, digest = await begin(client, ada), digest_of(b"abcdef")
    await client.patch(location, content=b"abc", headers=ada)
    for path in database.hub.settings.database.data_dir.glob("parts/*/*/*"):
        os.utime(path, (0, 0))
    await client.patch(location, content=b"def", headers=ada)
    await pruning.remove_interrupted(database)
    await pruning.prune(database)

    check_stored(await client.put(location, params={"digest": digest}, headers=ada), digest)
    assert left_over(database) == []


async def test_an_upload_whose_parts_are_gone_is_unknown(
    client: httpx2.AsyncClient, ada: Headers, database: Database
) -> None:
    location, digest = await begin(client, ada), digest_of(b"abc")
    await client.patch(location, content=b"abc", headers=ada)
    for path in database.hub.settings.database.data_dir.glob("parts/*/*/*"):
        path.unlink()

    response = await client.put(location, params={"digest": digest}, headers=ada)

    assert (response.status_code, code_of(response)) == (404, "BLOB_UPLOAD_UNKNOWN")
    assert (await client.get(location, headers=ada)).status_code == 404
