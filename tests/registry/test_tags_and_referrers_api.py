"""Lists of tags and of referrers over HTTP, with their pages and filters."""

import httpx2
import pytest

from hublet.registry import service
from people import Headers
from registry.images import (
    IMAGE,
    INDEX,
    MANIFEST,
    a_manifest,
    an_index,
    code_of,
    descriptor,
    digest_of,
    push_blob,
    push_image,
    put_manifest,
)

NOBODYS = "sha256:" + "0" * 64


async def push_tags(client: httpx2.AsyncClient, who: Headers, *tags: str) -> None:
    manifest = await push_image(client, who, tag=tags[0])
    for tag in tags[1:]:
        await put_manifest(client, who, manifest, tag)


async def tags_of(client: httpx2.AsyncClient, who: Headers, query: str = "") -> list[str]:
    response = await client.get(f"{IMAGE}/tags/list{query}", headers=who)
    assert response.status_code == 200
    assert response.json()["name"] == "ada/tool"
    tags: list[str] = response.json()["tags"]
    return tags


async def test_tags_come_in_the_order_of_their_bytes(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await push_tags(client, ada, "b", "_a", "B", "1.10", "1.9", "a")

    assert await tags_of(client, ada) == ["1.10", "1.9", "B", "_a", "a", "b"]
    assert await tags_of(client, ada, "?last=1.10") == ["1.9", "B", "_a", "a", "b"]
    assert await tags_of(client, ada, "?last=Zzz") == ["_a", "a", "b"]
    assert await tags_of(client, ada, "?n=2&last=B") == ["_a", "a"]
    assert await tags_of(client, ada, "?n=0") == []


async def test_a_list_that_is_cut_links_to_the_rest(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await push_tags(client, ada, "a", "b", "c", "d", "e")
    path, pages = f"{IMAGE}/tags/list?n=2", []

    while path:
        response = await client.get(path, headers=ada)
        pages.append(response.json()["tags"])
        link = response.headers.get("Link", "")
        assert not link or link.endswith('>; rel="next"')
        path = link.partition(">")[0].removeprefix("<")

    assert pages == [["a", "b"], ["c", "d"], ["e"]]


@pytest.mark.parametrize("query", ["?n=5", "?n=0", ""])
async def test_a_list_that_is_not_cut_links_to_nothing(
    client: httpx2.AsyncClient, ada: Headers, query: str
) -> None:
    await push_tags(client, ada, "a", "b", "c", "d", "e")

    response = await client.get(f"{IMAGE}/tags/list{query}", headers=ada)

    assert "Link" not in response.headers


@pytest.mark.parametrize("n", ["-1", "x", "1.5", "²"])
async def test_n_is_a_number(client: httpx2.AsyncClient, ada: Headers, n: str) -> None:
    await push_tags(client, ada, "a")

    response = await client.get(f"{IMAGE}/tags/list", params={"n": n}, headers=ada)

    assert (response.status_code, code_of(response)) == (400, "PAGINATION_NUMBER_INVALID")


@pytest.mark.parametrize("name", ["ada/nothing", "ada/tool/nothing", "nobody/nothing"])
async def test_an_image_that_was_never_pushed_has_no_list(
    client: httpx2.AsyncClient, ada: Headers, name: str
) -> None:
    await push_tags(client, ada, "a")

    response = await client.get(f"/v2/{name}/tags/list", headers=ada)

    assert (response.status_code, code_of(response)) == (404, "NAME_UNKNOWN")


async def test_images_below_a_repository_have_tags_of_their_own(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await push_tags(client, ada, "a")
    await push_image(client, ada, tag="b", image=f"{IMAGE}/deep/er")

    response = await client.get(f"{IMAGE}/deep/er/tags/list", headers=ada)

    assert response.json() == {"name": "ada/tool/deep/er", "tags": ["b"]}
    assert await tags_of(client, ada) == ["a"]


async def referrers_of(
    client: httpx2.AsyncClient, who: Headers, digest: str, query: str = ""
) -> httpx2.Response:
    response = await client.get(f"{IMAGE}/referrers/{digest}{query}", headers=who)
    assert response.status_code == 200, response.text
    assert response.headers["Content-Type"] == INDEX
    assert response.json()["schemaVersion"] == 2
    assert response.json()["mediaType"] == INDEX
    return response


async def test_referrers_are_listed_with_their_types_and_annotations(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    image = await push_image(client, ada)
    subject = descriptor(image, MANIFEST)
    signature = a_manifest(
        artifactType="application/vnd.example.signature", annotations={"by": "ada"}, subject=subject
    )
    image_like = a_manifest(subject=subject, config=b"{}")
    index = an_index(subject=subject)
    for manifest in (signature, image_like, index):
        await put_manifest(client, ada, manifest)

    listed = (await referrers_of(client, ada, digest_of(image))).json()["manifests"]

    expected = [
        descriptor(
            signature,
            MANIFEST,
            artifactType="application/vnd.example.signature",
            annotations={"by": "ada"},
        ),
        descriptor(image_like, MANIFEST, artifactType="application/vnd.oci.image.config.v1+json"),
        descriptor(index, INDEX),
    ]
    assert listed == sorted(expected, key=lambda each: str(each["digest"]))


async def test_referrers_are_filtered_and_the_filter_is_named(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    image = await push_image(client, ada)
    for kind in ("a/sbom", "a/signature"):
        manifest = a_manifest(artifactType=kind, subject=descriptor(image, MANIFEST))
        await put_manifest(client, ada, manifest)

    filtered = await referrers_of(client, ada, digest_of(image), "?artifactType=a/sbom")
    nothing = await referrers_of(client, ada, digest_of(image), "?artifactType=a/b")
    everything = await referrers_of(client, ada, digest_of(image))

    assert [each["artifactType"] for each in filtered.json()["manifests"]] == ["a/sbom"]
    assert nothing.json()["manifests"] == []
    for response in (filtered, nothing):
        assert response.headers["OCI-Filters-Applied"] == "artifactType"
    assert len(everything.json()["manifests"]) == 2
    assert "OCI-Filters-Applied" not in everything.headers


@pytest.mark.parametrize("is_pushed", [True, False])
async def test_what_nobody_refers_to_has_an_empty_list(
    client: httpx2.AsyncClient, ada: Headers, *, is_pushed: bool
) -> None:
    if is_pushed:
        await push_image(client, ada)

    assert (await referrers_of(client, ada, NOBODYS)).json()["manifests"] == []


async def test_referrers_of_what_is_no_digest_are_refused(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    response = await client.get(f"{IMAGE}/referrers/latest", headers=ada)

    assert (response.status_code, code_of(response)) == (400, "DIGEST_INVALID")


async def test_a_deleted_referrer_is_not_listed(client: httpx2.AsyncClient, ada: Headers) -> None:
    await push_blob(client, ada, b"{}")
    manifest = a_manifest(subject={"mediaType": MANIFEST, "digest": NOBODYS, "size": 3})
    await put_manifest(client, ada, manifest)
    assert len((await referrers_of(client, ada, NOBODYS)).json()["manifests"]) == 1

    await client.delete(f"{IMAGE}/manifests/{digest_of(manifest)}", headers=ada)

    assert (await referrers_of(client, ada, NOBODYS)).json()["manifests"] == []


async def test_a_tag_that_looks_like_a_digest_is_a_tag(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    image = await push_image(client, ada)
    fallback = digest_of(image).replace(":", "-")
    signature = a_manifest(subject=descriptor(image, MANIFEST))
    await put_manifest(client, ada, signature)

    pushed = await put_manifest(client, ada, an_index(signature), fallback)

    assert pushed.status_code == 201
    pulled = await client.get(f"{IMAGE}/manifests/{fallback}", headers=ada)
    assert pulled.content == an_index(signature)
    # Whoever maintains the list in a tag finds its entries in ours as well.
    listed = (await referrers_of(client, ada, digest_of(image))).json()["manifests"]
    assert [each["digest"] for each in listed] == [digest_of(signature)]


async def test_many_referrers_come_in_pages(
    client: httpx2.AsyncClient, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MOST_REFERRERS", 2)
    await push_blob(client, ada, b"{}")
    subject = {"mediaType": MANIFEST, "digest": NOBODYS, "size": 3}
    for number in range(5):
        manifest = a_manifest(
            subject=subject, artifactType="a/b", annotations={"number": str(number)}
        )
        await put_manifest(client, ada, manifest)
    path, sizes = "?artifactType=a/b", []

    while path:
        response = await referrers_of(client, ada, NOBODYS, path)
        sizes.append(len(response.json()["manifests"]))
        path = response.headers.get("Link", "").partition(">")[0].partition("?")[2]
        path = path and f"?{path}"

    assert sizes == [2, 2, 1]
