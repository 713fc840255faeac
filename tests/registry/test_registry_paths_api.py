"""The file endpoints of a container: what its registry keeps is not changed as files."""

import httpx2
import pytest

from people import Headers
from repositories import a_repo

PATHS = ["blobs", "blobs/sha256/00", "manifests", "manifests/gpu/1.0"]
FILES = "/api/containers/ada/tool/files"


@pytest.fixture(autouse=True)
async def _container(client: httpx2.AsyncClient, ada: Headers) -> None:
    await a_repo(client, ada, "ada/tool", type="container")


@pytest.mark.parametrize("path", PATHS)
async def test_what_the_registry_keeps_is_not_put_as_a_file(
    client: httpx2.AsyncClient, ada: Headers, path: str
) -> None:
    response = await client.put(f"{FILES}/{path}", headers=ada, content=b"x")

    assert response.status_code == 403
    assert response.json()["error"].startswith(f"{path} belongs to the container registry:")


async def test_a_batch_leaves_out_what_the_registry_keeps(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    lines = [
        '{"type": "addFile", "path": "manifests/1", "content": "eA=="}',
        '{"type": "deleteFile", "path": "blobs/sha256/00"}',
        '{"type": "addFile", "path": "README.md", "content": "eA=="}',
    ]
    response = await client.post(
        "/api/containers/ada/tool/batch",
        headers=ada | {"Content-Type": "application/x-ndjson"},
        content="\n".join(lines),
    )

    body = response.json()
    assert (body["processed"], body["succeeded"]) == (3, 1)
    assert [each["path"] for each in body["failed"]] == ["manifests/1", "blobs/sha256/00"]
    tree = (await client.get("/api/containers/ada/tool/tree", headers=ada)).json()
    assert [each["path"] for each in tree] == ["README.md"]


async def test_other_paths_and_buckets_have_no_such_folders(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/tub", type="bucket")
    notes = await client.put(f"{FILES}/notes/blobs", headers=ada, content=b"x")
    blob = await client.put("/api/buckets/ada/tub/files/blobs/a", headers=ada, content=b"x")

    assert (notes.status_code, blob.status_code) == (200, 200)
