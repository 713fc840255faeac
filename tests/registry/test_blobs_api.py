"""Blobs over HTTP: pull with ranges, HEAD, mount, deletion, and who sees them."""

import httpx2
import pytest

from hublet.core.database import Database
from people import Headers, sign_in
from registry.images import IMAGE, code_of, digest_of, push_blob, push_image

CONTENT = bytes(range(100))
DIGEST = digest_of(CONTENT)
OTHER = "/v2/ada/other"
MISSING = "sha256:" + "0" * 64


async def make_private(client: httpx2.AsyncClient, who: Headers, name: str) -> None:
    response = await client.put(
        f"/api/containers/{name}/settings", json={"private": True}, headers=who
    )
    assert response.status_code == 200, response.text


async def mount(
    client: httpx2.AsyncClient, who: Headers, digest: str, source: str | None, *, to: str = OTHER
) -> httpx2.Response:
    query = {"mount": digest} | ({} if source is None else {"from": source})
    return await client.post(f"{to}/blobs/uploads/", params=query, headers=who)


async def has_blob(client: httpx2.AsyncClient, who: Headers, image: str, digest: str) -> bool:
    return (await client.head(f"{image}/blobs/{digest}", headers=who)).status_code == 200


async def test_a_blob_is_pulled_and_asked_for(client: httpx2.AsyncClient, ada: Headers) -> None:
    await push_blob(client, ada, CONTENT)

    pulled = await client.get(f"{IMAGE}/blobs/{DIGEST}", headers=ada)
    asked = await client.head(f"{IMAGE}/blobs/{DIGEST}", headers=ada)

    assert pulled.content == CONTENT
    assert asked.content == b""
    for response in (pulled, asked):
        assert response.status_code == 200
        assert response.headers["Content-Length"] == "100"
        assert response.headers["Content-Type"] == "application/octet-stream"
        assert response.headers["Docker-Content-Digest"] == DIGEST


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [("0-9", 0, 10), ("90-", 90, 100), ("-10", 90, 100), ("95-500", 95, 100), ("0-", 0, 100),
     ("50-50", 50, 51), ("-500", 0, 100)],
)  # fmt: skip
async def test_a_part_of_a_blob_is_pulled(
    client: httpx2.AsyncClient, ada: Headers, asked: str, start: int, end: int
) -> None:
    await push_blob(client, ada, CONTENT)

    response = await client.get(
        f"{IMAGE}/blobs/{DIGEST}", headers=ada | {"Range": f"bytes={asked}"}
    )

    assert response.status_code == 206
    assert response.content == CONTENT[start:end]
    assert response.headers["Content-Range"] == f"bytes {start}-{end - 1}/100"
    assert response.headers["Content-Length"] == str(end - start)


@pytest.mark.parametrize("asked", ["50-0", "100-", "100-200", "-0"])
async def test_a_range_outside_of_a_blob_is_refused(
    client: httpx2.AsyncClient, ada: Headers, asked: str
) -> None:
    await push_blob(client, ada, CONTENT)

    response = await client.get(
        f"{IMAGE}/blobs/{DIGEST}", headers=ada | {"Range": f"bytes={asked}"}
    )

    assert (response.status_code, code_of(response)) == (416, "RANGE_INVALID")


@pytest.mark.parametrize(
    ("digest", "status", "code"),
    [
        (MISSING, 404, "BLOB_UNKNOWN"),
        ("sha512:" + "0" * 128, 404, "BLOB_UNKNOWN"),
        ("sha256:abc", 400, "DIGEST_INVALID"),
        ("latest", 400, "DIGEST_INVALID"),
    ],
)
async def test_a_blob_that_is_not_there_is_unknown(
    client: httpx2.AsyncClient, ada: Headers, digest: str, status: int, code: str
) -> None:
    await push_blob(client, ada, CONTENT)

    for method in ("GET", "DELETE"):
        response = await client.request(method, f"{IMAGE}/blobs/{digest}", headers=ada)
        assert (response.status_code, code_of(response)) == (status, code)


async def test_a_blob_is_there_by_its_own_digest_alone(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await push_blob(client, ada, CONTENT)

    assert not await has_blob(client, ada, IMAGE, digest_of(CONTENT, "sha512"))


async def test_a_blob_is_seen_in_its_image_alone(client: httpx2.AsyncClient, ada: Headers) -> None:
    await push_blob(client, ada, CONTENT)
    await push_blob(client, ada, b"x", image=OTHER)
    await push_blob(client, ada, b"x", image=f"{IMAGE}/gpu")

    assert not await has_blob(client, ada, OTHER, DIGEST)
    assert not await has_blob(client, ada, f"{IMAGE}/gpu", DIGEST)


async def test_a_deleted_blob_is_gone_here_and_stays_elsewhere(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    for image in (IMAGE, OTHER):
        await push_blob(client, ada, CONTENT, image=image)

    response = await client.delete(f"{IMAGE}/blobs/{DIGEST}", headers=ada)

    assert response.status_code == 202
    assert not await has_blob(client, ada, IMAGE, DIGEST)
    assert await has_blob(client, ada, OTHER, DIGEST)
    again = await client.delete(f"{IMAGE}/blobs/{DIGEST}", headers=ada)
    assert (again.status_code, code_of(again)) == (404, "BLOB_UNKNOWN")


async def test_a_blob_that_a_manifest_names_is_not_deleted(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    manifest = await push_image(client, ada, CONTENT)

    refused = await client.delete(f"{IMAGE}/blobs/{DIGEST}", headers=ada)
    await client.delete(f"{IMAGE}/manifests/{digest_of(manifest)}", headers=ada)
    deleted = await client.delete(f"{IMAGE}/blobs/{DIGEST}", headers=ada)

    assert (refused.status_code, code_of(refused)) == (405, "UNSUPPORTED")
    assert deleted.status_code == 202


async def test_a_blob_is_mounted(client: httpx2.AsyncClient, ada: Headers) -> None:
    await push_blob(client, ada, CONTENT)

    for source, target in (("ada/tool", OTHER), ("ada/tool", f"{IMAGE}/gpu"), (None, "/v2/ada/c")):
        response = await mount(client, ada, DIGEST, source, to=target)
        assert response.status_code == 201, response.text
        assert response.headers["Location"] == f"{target}/blobs/{DIGEST}"
        assert response.headers["Docker-Content-Digest"] == DIGEST
        assert await has_blob(client, ada, target, DIGEST)


@pytest.mark.parametrize(
    ("digest", "source"),
    [
        (MISSING, "ada/tool"),
        (MISSING, None),
        (DIGEST, "ada/nothing"),
        (DIGEST, "nobody/nothing"),
        (DIGEST, "ada/tool/gpu"),
        (DIGEST, "../tool"),
        ("sha256:abc", "ada/tool"),
    ],
)
async def test_what_cannot_be_mounted_is_uploaded(
    client: httpx2.AsyncClient, ada: Headers, digest: str, source: str | None
) -> None:
    await push_blob(client, ada, CONTENT)

    response = await mount(client, ada, digest, source)

    assert response.status_code == 202
    assert response.headers["Location"].startswith(f"{OTHER}/blobs/uploads/")
    assert response.headers["Range"] == "0-0"


@pytest.mark.parametrize("source", ["ada/tool", None])
async def test_nobody_mounts_what_they_may_not_read(
    client: httpx2.AsyncClient, ada: Headers, database: Database, source: str | None
) -> None:
    await push_blob(client, ada, CONTENT)
    await make_private(client, ada, "ada/tool")
    bob = await sign_in(database, "bob")

    response = await mount(client, bob, DIGEST, source, to="/v2/bob/mine")
    unknown = await mount(client, bob, MISSING, source, to="/v2/bob/mine")

    assert (response.status_code, unknown.status_code) == (202, 202)
    assert not await has_blob(client, bob, "/v2/bob/mine", DIGEST)


async def test_nobody_mounts_into_what_they_may_not_write(
    client: httpx2.AsyncClient, ada: Headers, database: Database
) -> None:
    await push_blob(client, ada, CONTENT)
    await push_blob(client, ada, b"x", image=OTHER)
    bob = await sign_in(database, "bob")

    response = await mount(client, bob, DIGEST, "ada/tool", to=OTHER)

    assert (response.status_code, code_of(response)) == (403, "DENIED")
    assert not await has_blob(client, ada, OTHER, DIGEST)


@pytest.mark.parametrize("damage", ["lost", "short"])
async def test_a_blob_without_its_bytes_is_unknown_until_it_comes_again(
    client: httpx2.AsyncClient, ada: Headers, database: Database, damage: str
) -> None:
    await push_blob(client, ada, CONTENT)
    [path] = database.hub.settings.database.data_dir.glob(f"blobs/??/??/{DIGEST[7:]}")
    if damage == "lost":
        path.unlink()
    else:
        path.write_bytes(CONTENT[:50])

    assert not await has_blob(client, ada, IMAGE, DIGEST)
    assert (await mount(client, ada, DIGEST, "ada/tool")).status_code == 202
    if damage == "lost":
        pulled = await client.get(f"{IMAGE}/blobs/{DIGEST}", headers=ada)
        assert (pulled.status_code, code_of(pulled)) == (404, "BLOB_UNKNOWN")
    await push_blob(client, ada, CONTENT)
    assert await has_blob(client, ada, IMAGE, DIGEST)
    assert (await client.get(f"{IMAGE}/blobs/{DIGEST}", headers=ada)).content == CONTENT


async def test_a_layer_is_stored_once_for_the_whole_hub(
    client: httpx2.AsyncClient, ada: Headers, database: Database
) -> None:
    bob = await sign_in(database, "bob")
    await push_blob(client, ada, CONTENT)
    await push_blob(client, bob, CONTENT, image="/v2/bob/tool")

    assert len([*database.hub.settings.database.data_dir.glob("blobs/??/??/*")]) == 1
