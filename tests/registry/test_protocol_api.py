"""What holds for all of /v2/: the ping, the form of errors, names, files, downloads."""

from dataclasses import replace

import httpx2
import pytest
from fastapi import FastAPI

from hublet.app import with_edge
from hublet.core.database import Database
from people import Headers
from registry.images import (
    IMAGE,
    MANIFEST,
    a_manifest,
    begin,
    code_of,
    digest_of,
    push_blob,
    push_image,
    put_manifest,
)
from repos.limits import set_limit


async def test_the_registry_answers_who_has_a_token(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    response = await client.get("/v2/", headers=ada)

    assert response.status_code == 200
    assert response.json() == {}
    assert response.headers["Docker-Distribution-Api-Version"] == "registry/2.0"
    refused = await client.get("/v2/")
    assert (refused.status_code, code_of(refused)) == (401, "UNAUTHORIZED")


async def test_no_address_needs_or_refuses_a_slash_at_its_end(app: FastAPI, ada: Headers) -> None:
    transport = httpx2.ASGITransport(app=with_edge(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
        for path in ("/v2", "/v2/"):
            assert (await client.get(path, headers=ada)).status_code == 200
        for path in (f"{IMAGE}/blobs/uploads", f"{IMAGE}/blobs/uploads/"):
            assert (await client.post(path, headers=ada)).status_code == 202


@pytest.mark.parametrize(
    "path",
    ["/v2/x", "/v2/ada/tool", "/v2/ada/tool/manifests", "/v2/ada/tool/tags", "/v2/_catalog",
     "/v2/ada/tool/settings/a"],
)  # fmt: skip
async def test_an_address_that_is_none_has_the_error_of_the_protocol(
    client: httpx2.AsyncClient, ada: Headers, path: str
) -> None:
    for method in ("GET", "PUT", "DELETE"):
        response = await client.request(method, path, headers=ada | {"Accept": "text/html"})
        assert (response.status_code, code_of(response)) == (404, "NAME_UNKNOWN")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v2/"),
        ("POST", f"{IMAGE}/manifests/latest"),
        ("PUT", f"{IMAGE}/tags/list"),
        ("DELETE", f"{IMAGE}/referrers/sha256:abc"),
        ("PATCH", f"{IMAGE}/blobs/sha256:abc"),
        ("POST", f"{IMAGE}/blobs/uploads/abc"),
    ],
)
async def test_a_method_that_is_not_possible_is_unsupported(
    client: httpx2.AsyncClient, ada: Headers, method: str, path: str
) -> None:
    response = await client.request(method, path, headers=ada)

    assert (response.status_code, code_of(response)) == (405, "UNSUPPORTED")


@pytest.mark.parametrize(
    "name",
    ["tool", "ada/..%2Fbob/tool", "ada//tool", "ada/Tool", "ada/tool%2F..", "ada/.tool", "ada/to ol",
     "ada/tool%0A", "ada/-tool", "ada/a__b___c", "ada/" + "a" * 255, "..%2F..%2Fetc"],
)  # fmt: skip
async def test_a_name_that_is_none_is_refused(
    client: httpx2.AsyncClient, ada: Headers, name: str
) -> None:
    for path in ("manifests/latest", "tags/list", f"blobs/{digest_of(b'')}"):
        response = await client.get(f"http://hub.test/v2/{name}/{path}", headers=ada)
        assert response.status_code in {400, 404}
        assert code_of(response) in {"NAME_INVALID", "NAME_UNKNOWN"}
    pushed = await client.post(f"http://hub.test/v2/{name}/blobs/uploads/", headers=ada)
    assert pushed.status_code in {400, 404}


@pytest.mark.parametrize("path", ["blobs", "manifests/tags", "blobs/uploads", "tags/list/a"])
async def test_a_name_may_have_the_words_of_the_protocol(
    client: httpx2.AsyncClient, ada: Headers, path: str
) -> None:
    image = f"{IMAGE}/{path}"

    manifest = await push_image(client, ada, b"layer", image=image)

    assert (await client.get(f"{image}/manifests/latest", headers=ada)).content == manifest
    assert (await client.get(f"{image}/tags/list", headers=ada)).json()["tags"] == ["latest"]
    blob = await client.get(f"{image}/blobs/{digest_of(b'layer')}", headers=ada)
    assert blob.content == b"layer"


async def test_the_files_of_a_container_are_its_blobs_and_tags(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    manifest = await push_image(client, ada, b"layer")
    await push_image(client, ada, b"layer", tag="2", image=f"{IMAGE}/gpu")
    hexes = [digest_of(each)[7:] for each in (b"layer", b"{}", manifest)]

    tree = await client.get("/api/containers/ada/tool/tree", headers=ada)

    paths = [
        *(f"blobs/sha256/{each}" for each in hexes),
        "manifests/_tags/latest",
        "manifests/gpu/_tags/2",
    ]
    assert [file["path"] for file in tree.json()] == sorted(paths)
    assert sum(file["size"] for file in tree.json()) == 5 + 2 + 3 * len(manifest)
    file = await client.get("/api/containers/ada/tool/files/manifests/_tags/latest", headers=ada)
    assert (file.content, file.headers["Content-Type"]) == (manifest, MANIFEST)


async def test_files_go_with_the_last_image_that_has_them(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    manifest = await push_image(client, ada)
    for image in (IMAGE, f"{IMAGE}/gpu"):
        await push_image(client, ada, tag="x", image=image)

    async def files() -> list[str]:
        tree = await client.get("/api/containers/ada/tool/tree", headers=ada)
        return [file["path"].partition("/")[0] for file in tree.json()]

    for image in (IMAGE, f"{IMAGE}/gpu"):
        await client.delete(f"{image}/manifests/{digest_of(manifest)}", headers=ada)
        await client.delete(f"{image}/blobs/{digest_of(b'{}')}", headers=ada)
        expected = ["blobs", "blobs", "manifests"] if image == IMAGE else []
        assert await files() == expected
    info = await client.get("/api/containers/ada/tool", headers=ada)
    assert (info.json()["size"], info.json()["totalFiles"]) == (0, 0)


async def test_a_pull_is_a_download_and_a_look_is_none(
    client: httpx2.AsyncClient, app: FastAPI, ada: Headers, database: Database
) -> None:
    await push_image(client, ada)

    async def downloads() -> int:
        await app.state.downloads.flush()
        async with database.read() as conn:
            return int(await conn.fetch_value("SELECT downloads FROM repos"))

    await client.head(f"{IMAGE}/manifests/latest", headers=ada)
    assert await downloads() == 0
    await client.get(f"{IMAGE}/manifests/latest", headers=ada)
    assert await downloads() == 1


async def test_an_owner_holds_no_more_than_the_limit(
    client: httpx2.AsyncClient, ada: Headers, database: Database
) -> None:
    await push_blob(client, ada, b"x" * 900)
    location = await begin(client, ada)
    await set_limit(database, 1000)

    small = await client.patch(location, content=b"y" * 90, headers=ada)
    large = await client.patch(location, content=b"y" * 90, headers=ada)
    whole = await client.post(
        f"{IMAGE}/blobs/uploads/",
        params={"digest": digest_of(b"z" * 101)},
        content=b"z" * 101,
        headers=ada,
    )

    assert small.status_code == 202
    for response in (large, whole):
        assert (response.status_code, code_of(response)) == (403, "DENIED")
    asked = await client.get(location, headers=ada)
    assert asked.headers["Range"] == "0-89"


async def test_a_hub_that_is_asked_too_often_says_so_in_the_form_of_the_protocol(
    app: FastAPI,
) -> None:
    settings = app.state.settings
    limits = replace(settings.limits, anonymous_requests=1)
    app.state.settings = replace(settings, limits=limits)
    transport = httpx2.ASGITransport(app=with_edge(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
        await client.get("/v2/")
        response = await client.get("/v2/")

    assert (response.status_code, code_of(response)) == (429, "TOOMANYREQUESTS")
    assert int(response.headers["Retry-After"]) > 0


async def test_what_goes_wrong_here_has_the_form_of_the_protocol(
    app: FastAPI, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hublet.registry.service.put_manifest", None)
    transport = httpx2.ASGITransport(app=with_edge(app), raise_app_exceptions=False)

    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
        response = await put_manifest(client, ada, a_manifest(), "latest")

    assert (response.status_code, code_of(response)) == (500, "UNKNOWN")
