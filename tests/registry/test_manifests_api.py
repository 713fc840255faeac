"""Manifests over HTTP: push, pull, tags and deletion."""

import json

import httpx2
import pytest

from hublet.core.database import Database
from people import Headers, sign_in
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

MISSING = "sha256:" + "0" * 64


async def test_a_manifest_is_pulled_by_tag_and_by_digest_byte_for_byte(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    manifest = await push_image(client, ada, b"layer")

    for reference in ("latest", digest_of(manifest)):
        pulled = await client.get(f"{IMAGE}/manifests/{reference}", headers=ada)
        assert pulled.content == manifest
        assert pulled.headers["Content-Type"] == MANIFEST
        assert pulled.headers["Docker-Content-Digest"] == digest_of(manifest)
        asked = await client.head(f"{IMAGE}/manifests/{reference}", headers=ada)
        assert asked.status_code == 200
        assert asked.headers["Content-Length"] == str(len(manifest))
        assert asked.headers["Docker-Content-Digest"] == digest_of(manifest)
        assert asked.content == b""


async def test_a_push_says_where_the_manifest_is(client: httpx2.AsyncClient, ada: Headers) -> None:
    await push_blob(client, ada, b"{}")
    manifest = a_manifest()

    response = await put_manifest(client, ada, manifest, "1.0")

    assert response.status_code == 201
    assert response.headers["Docker-Content-Digest"] == digest_of(manifest)
    assert response.headers["Location"] == f"{IMAGE}/manifests/{digest_of(manifest)}"
    pulled = await client.get(response.headers["Location"], headers=ada)
    assert pulled.content == manifest


async def test_odd_spacing_and_unknown_fields_stay(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await push_blob(client, ada, b"{}")
    document = json.loads(a_manifest()) | {"org.example": {"any": [1, "thing"]}}
    manifest = json.dumps(document, indent=7).encode() + b"\n\n"

    await put_manifest(client, ada, manifest, "odd")

    pulled = await client.get(f"{IMAGE}/manifests/odd", headers=ada)
    assert pulled.content == manifest


async def test_the_stored_type_is_sent_whatever_the_client_accepts(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await push_image(client, ada)
    accept = [("Accept", "application/vnd.docker.distribution.manifest.v2+json")]

    response = await client.get(
        f"{IMAGE}/manifests/latest", headers=[*ada.items(), *accept, ("Accept", "text/html")]
    )

    assert response.status_code == 200
    assert response.headers["Content-Type"] == MANIFEST


async def test_a_client_that_has_the_digest_is_told_so(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    manifest = await push_image(client, ada)

    response = await client.get(
        f"{IMAGE}/manifests/latest",
        headers=ada | {"If-None-Match": f'"{digest_of(manifest)}"'},
    )

    assert response.status_code == 304


@pytest.mark.parametrize("reference", ["none", MISSING, "sha256:short", "sha999:" + "0" * 64, "-a"])
async def test_what_is_not_there_is_unknown(
    client: httpx2.AsyncClient, ada: Headers, reference: str
) -> None:
    await push_image(client, ada)

    response = await client.get(f"{IMAGE}/manifests/{reference}", headers=ada)

    assert response.status_code == 404
    assert code_of(response) == "MANIFEST_UNKNOWN"
    assert (await client.head(f"{IMAGE}/manifests/{reference}", headers=ada)).status_code == 404


async def test_a_manifest_has_the_digest_that_it_is_pushed_by(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await push_blob(client, ada, b"{}")

    wrong = await put_manifest(client, ada, a_manifest(), MISSING)
    malformed = await put_manifest(client, ada, a_manifest(), "sha256:abc")

    assert (wrong.status_code, code_of(wrong)) == (400, "DIGEST_INVALID")
    assert (malformed.status_code, code_of(malformed)) == (400, "DIGEST_INVALID")
    assert (await client.head(f"{IMAGE}/manifests/{MISSING}", headers=ada)).status_code == 404


async def test_a_manifest_can_be_known_by_sha512(client: httpx2.AsyncClient, ada: Headers) -> None:
    await push_blob(client, ada, b"{}")
    manifest = a_manifest()
    digest = digest_of(manifest, "sha512")

    by_digest = await put_manifest(client, ada, manifest, digest)
    by_tag = await client.put(
        f"{IMAGE}/manifests/long",
        params={"digest": digest},
        content=manifest,
        headers=ada | {"Content-Type": MANIFEST},
    )

    assert by_digest.headers["Docker-Content-Digest"] == digest
    assert by_tag.headers["Docker-Content-Digest"] == digest
    pulled = await client.get(f"{IMAGE}/manifests/long", headers=ada)
    assert pulled.headers["Docker-Content-Digest"] == digest


async def test_a_tag_has_at_most_128_characters(client: httpx2.AsyncClient, ada: Headers) -> None:
    await push_blob(client, ada, b"{}")

    longest = await put_manifest(client, ada, a_manifest(), "a" * 128)
    longer = await put_manifest(client, ada, a_manifest(), "a" * 129)

    assert longest.status_code == 201
    assert (longer.status_code, code_of(longer)) == (400, "TAG_INVALID")


async def test_missing_layers_are_named(client: httpx2.AsyncClient, ada: Headers) -> None:
    await push_blob(client, ada, b"{}")

    response = await put_manifest(client, ada, a_manifest(b"never pushed"), "latest")

    assert (response.status_code, code_of(response)) == (400, "MANIFEST_BLOB_UNKNOWN")
    assert digest_of(b"never pushed") in response.text
    assert (await client.head(f"{IMAGE}/manifests/latest", headers=ada)).status_code == 404


async def test_a_blob_of_another_image_is_missing_in_this_one(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await push_blob(client, ada, b"{}")
    await push_blob(client, ada, b"elsewhere", image=f"{IMAGE}/gpu")

    response = await put_manifest(client, ada, a_manifest(b"elsewhere"), "latest")

    assert code_of(response) == "MANIFEST_BLOB_UNKNOWN"


@pytest.mark.parametrize(
    "layer",
    [
        descriptor(b"x", "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip"),
        descriptor(b"x", "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"),
        descriptor(b"x", urls=["https://example.com/layer"]),
        descriptor(b"x", data="eA=="),
    ],
)
async def test_layers_that_clients_have_from_elsewhere_need_no_blob(
    client: httpx2.AsyncClient, ada: Headers, layer: dict[str, object]
) -> None:
    await push_blob(client, ada, b"{}")

    response = await put_manifest(client, ada, a_manifest(layers=[layer]), "latest")

    assert response.status_code == 201


async def test_a_subject_need_not_exist(client: httpx2.AsyncClient, ada: Headers) -> None:
    await push_blob(client, ada, b"{}")
    manifest = a_manifest(subject={"mediaType": MANIFEST, "digest": MISSING, "size": 7})

    response = await put_manifest(client, ada, manifest)

    assert response.status_code == 201
    assert response.headers["OCI-Subject"] == MISSING


async def test_an_index_needs_its_manifests(client: httpx2.AsyncClient, ada: Headers) -> None:
    image = await push_image(client, ada, b"layer", tag=None)

    known = await put_manifest(client, ada, an_index(image), "all")
    unknown = await put_manifest(client, ada, an_index(b"not there"), "none")
    empty = await put_manifest(client, ada, an_index(), "empty")
    nested = await put_manifest(
        client, ada, an_index(manifests=[descriptor(an_index(image), INDEX)]), "nested"
    )

    assert known.status_code == 201
    assert code_of(unknown) == "MANIFEST_BLOB_UNKNOWN"
    assert empty.status_code == 201
    assert nested.status_code == 201


async def test_a_size_that_is_not_that_of_the_blob_is_refused(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    for blob in (b"{}", b"layer"):
        await push_blob(client, ada, blob)
    layer = descriptor(b"layer", size=6)

    response = await put_manifest(client, ada, a_manifest(layers=[layer]), "latest")

    assert (response.status_code, code_of(response)) == (400, "MANIFEST_INVALID")


async def test_a_manifest_of_4_mib_is_taken_and_one_of_10_mb_is_not(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await push_blob(client, ada, b"{}")
    base = len(a_manifest(annotations={"a": ""}))
    most = a_manifest(annotations={"a": "x" * ((4 << 20) - base)})

    taken = await put_manifest(client, ada, most, "large")
    refused = await put_manifest(client, ada, most + b" ", "larger")
    huge = await put_manifest(client, ada, a_manifest(annotations={"a": "x" * 10**7}), "huge")

    assert (len(most), taken.status_code) == (4 << 20, 201)
    assert (refused.status_code, code_of(refused)) == (413, "SIZE_INVALID")
    assert (huge.status_code, code_of(huge)) == (413, "SIZE_INVALID")
    tags = await client.get(f"{IMAGE}/tags/list", headers=ada)
    assert tags.json()["tags"] == ["large"]


async def test_a_manifest_gets_further_tags_with_the_same_request(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await push_blob(client, ada, b"{}")
    manifest = a_manifest()
    tags = [f"t{number:02}" for number in range(12)]

    response = await client.put(
        f"{IMAGE}/manifests/{digest_of(manifest)}",
        params=[("tag", tag) for tag in tags],
        content=manifest,
        headers=ada | {"Content-Type": MANIFEST},
    )

    assert response.status_code == 201
    assert response.headers.get_list("OCI-Tag") == tags
    listed = await client.get(f"{IMAGE}/tags/list", headers=ada)
    assert listed.json()["tags"] == tags


async def test_too_many_tags_are_refused(client: httpx2.AsyncClient, ada: Headers) -> None:
    await push_blob(client, ada, b"{}")

    response = await client.put(
        f"{IMAGE}/manifests/first",
        params=[("tag", f"t{number}") for number in range(101)],
        content=a_manifest(),
        headers=ada | {"Content-Type": MANIFEST},
    )

    assert (response.status_code, code_of(response)) == (414, "TAG_INVALID")


async def test_only_the_tag_goes_when_a_tag_is_deleted(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    manifest = await push_image(client, ada, tag="a")
    await put_manifest(client, ada, manifest, "b")

    deleted = await client.delete(f"{IMAGE}/manifests/a", headers=ada)

    assert deleted.status_code == 202
    assert (await client.head(f"{IMAGE}/manifests/a", headers=ada)).status_code == 404
    assert (await client.head(f"{IMAGE}/manifests/b", headers=ada)).status_code == 200
    again = await client.delete(f"{IMAGE}/manifests/a", headers=ada)
    assert (again.status_code, code_of(again)) == (404, "MANIFEST_UNKNOWN")


async def test_all_tags_go_with_their_manifest(client: httpx2.AsyncClient, ada: Headers) -> None:
    manifest = await push_image(client, ada, tag="a")
    await put_manifest(client, ada, manifest, "b")

    deleted = await client.delete(f"{IMAGE}/manifests/{digest_of(manifest)}", headers=ada)

    assert deleted.status_code == 202
    assert (await client.get(f"{IMAGE}/tags/list", headers=ada)).json()["tags"] == []
    gone = await client.get(f"{IMAGE}/manifests/{digest_of(manifest)}", headers=ada)
    assert code_of(gone) == "MANIFEST_UNKNOWN"


async def test_a_manifest_of_an_index_goes_after_the_index(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    image = await push_image(client, ada, tag=None)
    index = an_index(image)
    await put_manifest(client, ada, index, "all")

    early = await client.delete(f"{IMAGE}/manifests/{digest_of(image)}", headers=ada)
    assert (early.status_code, code_of(early)) == (405, "UNSUPPORTED")
    for manifest in (index, image):
        path = f"{IMAGE}/manifests/{digest_of(manifest)}"
        assert (await client.delete(path, headers=ada)).status_code == 202


async def test_a_manifest_whose_layer_was_lost_is_refused_until_it_comes_again(
    client: httpx2.AsyncClient, ada: Headers, database: Database
) -> None:
    digest = await push_blob(client, ada, b"layer")
    await push_blob(client, ada, b"{}")
    [path] = database.hub.settings.database.data_dir.glob(f"blobs/??/??/{digest[7:]}")
    path.unlink()

    lost = await put_manifest(client, ada, a_manifest(b"layer"), "latest")
    await push_blob(client, ada, b"layer")
    repaired = await put_manifest(client, ada, a_manifest(b"layer"), "latest")

    assert code_of(lost) == "MANIFEST_BLOB_UNKNOWN"
    assert repaired.status_code == 201


async def test_strangers_neither_push_nor_delete(
    client: httpx2.AsyncClient, ada: Headers, database: Database
) -> None:
    manifest = await push_image(client, ada)
    bob = await sign_in(database, "bob")

    pushed = await put_manifest(client, bob, manifest, "mine")
    deleted = await client.delete(f"{IMAGE}/manifests/latest", headers=bob)

    assert {pushed.status_code, deleted.status_code} <= {403, 404}
    assert (await client.get(f"{IMAGE}/tags/list", headers=ada)).json()["tags"] == ["latest"]
