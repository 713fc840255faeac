"""Images for tests of the registry: blobs, manifests, and the requests that push them."""

import hashlib
import json
from typing import Any

import httpx2

from people import Headers

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
IMAGE = "/v2/ada/tool"


def digest_of(content: bytes, algorithm: str = "sha256") -> str:
    return f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}"


def descriptor(content: bytes, media_type: str = LAYER, **more: Any) -> dict[str, Any]:
    return {
        "mediaType": media_type,
        "digest": digest_of(content),
        "size": len(content),
        **more,
    }


def a_manifest(*layers: bytes, config: bytes = b"{}", **more: Any) -> bytes:
    """Return an image manifest of these layers; further fields replace its own."""
    document = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor(config, CONFIG),
        "layers": [descriptor(layer) for layer in layers],
        **more,
    }
    return json.dumps({key: value for key, value in document.items() if value is not None}).encode()


def an_index(*manifests: bytes, **more: Any) -> bytes:
    return json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": INDEX,
            "manifests": [descriptor(each, MANIFEST) for each in manifests],
            **more,
        }
    ).encode()


async def push_blob(
    client: httpx2.AsyncClient, who: Headers, content: bytes, *, image: str = IMAGE
) -> str:
    """Push a blob with one request; return its digest."""
    digest = digest_of(content)
    response = await client.post(
        f"{image}/blobs/uploads/", params={"digest": digest}, content=content, headers=who
    )
    assert response.status_code == 201, response.text
    return digest


async def put_manifest(
    client: httpx2.AsyncClient,
    who: Headers,
    manifest: bytes,
    reference: str | None = None,
    *,
    image: str = IMAGE,
) -> httpx2.Response:
    media_type = json.loads(manifest)["mediaType"]
    return await client.put(
        f"{image}/manifests/{reference or digest_of(manifest)}",
        content=manifest,
        headers=who | {"Content-Type": media_type},
    )


async def push_image(
    client: httpx2.AsyncClient,
    who: Headers,
    *layers: bytes,
    tag: str | None = "latest",
    image: str = IMAGE,
    **more: Any,
) -> bytes:
    """Push the layers, the configuration and the manifest of an image; return the manifest."""
    for blob in {*layers, b"{}"}:
        await push_blob(client, who, blob, image=image)
    manifest = a_manifest(*layers, **more)
    response = await put_manifest(client, who, manifest, tag, image=image)
    assert response.status_code == 201, response.text
    return manifest


async def begin(client: httpx2.AsyncClient, who: Headers, *, image: str = IMAGE) -> str:
    """Begin an upload; return its location."""
    response = await client.post(f"{image}/blobs/uploads/", headers=who)
    assert response.status_code == 202, response.text
    return response.headers["Location"]


def code_of(response: httpx2.Response) -> str:
    """Return the code of an error, which has the form of the specification."""
    body = response.json()
    assert set(body) == {"errors"}, body
    [error] = body["errors"]
    assert set(error) == {"code", "message", "detail"}
    assert error["message"].endswith("."), error
    return str(error["code"])
