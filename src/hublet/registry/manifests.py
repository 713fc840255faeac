"""Manifests: what their JSON says, and the rules that it must keep. Nothing here reads or writes."""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from hublet.registry.errors import DigestMismatch, InvalidManifest
from hublet.registry.records import Descriptor, ParsedManifest, is_digest

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
INDEX_TYPES = frozenset({OCI_INDEX, DOCKER_LIST})
IMAGE_TYPES = frozenset({OCI_MANIFEST, DOCKER_MANIFEST})

_MEDIA_TYPE = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}"
)
# What says nothing of the content; then the manifest itself names its type.
_GENERIC_TYPES = frozenset({"", "application/json", "application/octet-stream", "text/plain"})
_OLD_DOCKER = "application/vnd.docker.distribution.manifest.v1"
_SCHEMA_VERSION = 2
# The fields of known manifests that hold descriptors, or lists of them.
_FIELDS = ("config", "layers", "manifests", "blobs")
# Of layers that a registry need not have.
_ELSEWHERE = re.compile(r"\.(nondistributable|foreign)\.|rootfs\.foreign")


def digest_of(content: bytes, *, algorithm: str = "sha256") -> str:
    return f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}"


def parse_manifest(
    content: bytes, *, content_type: str, expected_digest: str | None = None
) -> ParsedManifest:
    """Return what a manifest says; raise InvalidManifest or DigestMismatch unless it is in order."""
    algorithm = "sha256" if expected_digest is None else expected_digest.partition(":")[0]
    digest = digest_of(content, algorithm=algorithm)
    if expected_digest is not None and digest != expected_digest:
        raise DigestMismatch(expected=expected_digest, found=digest)
    document = _parse_json(content)
    media_type = _media_type(document, content_type)
    if media_type in IMAGE_TYPES | INDEX_TYPES:
        _check_known(document, media_type)
    return ParsedManifest(
        digest=digest,
        media_type=media_type,
        content=content,
        references=tuple(_references(document)),
        subject=_subject(document),
        artifact_type=_artifact_type(document, media_type),
        annotations=_annotations(document),
    )


def _parse_json(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content.decode())
    except (ValueError, RecursionError):
        raise InvalidManifest("it is not JSON in UTF-8") from None
    if not isinstance(document, dict):
        raise InvalidManifest("it is not a JSON object")
    return document


def _media_type(document: dict[str, Any], content_type: str) -> str:
    sent = content_type.partition(";")[0].strip()
    own = document.get("mediaType")
    if own is not None and not isinstance(own, str):
        raise InvalidManifest("mediaType is not a string")
    if own and sent not in _GENERIC_TYPES and sent != own:
        raise InvalidManifest(
            f"its mediaType is {own[:100]!r}, and Content-Type says {sent[:100]!r}"
        )
    media_type = own or (sent if sent not in _GENERIC_TYPES else _guess_type(document))
    if _MEDIA_TYPE.fullmatch(media_type) is None:
        raise InvalidManifest("its media type is not one")
    if media_type.startswith(_OLD_DOCKER) or "fsLayers" in document:
        raise InvalidManifest("it has the first schema of Docker, which this hub does not take")
    return media_type


def _guess_type(document: dict[str, Any]) -> str:
    return OCI_INDEX if "manifests" in document else OCI_MANIFEST


def _check_known(document: dict[str, Any], media_type: str) -> None:
    if document.get("schemaVersion") != _SCHEMA_VERSION:
        raise InvalidManifest(f"schemaVersion is not {_SCHEMA_VERSION}")
    if media_type in IMAGE_TYPES and not isinstance(document.get("config"), dict):
        raise InvalidManifest("config is not a descriptor")
    if media_type in IMAGE_TYPES and "manifests" in document:
        raise InvalidManifest("an image has layers and no manifests")
    if media_type in INDEX_TYPES and ("layers" in document or "config" in document):
        raise InvalidManifest("an index has manifests, and neither layers nor a config")


def _references(document: dict[str, Any]) -> Iterator[Descriptor]:
    """Yield each digest that a manifest names once, those that it needs first.

    Whatever looks like a descriptor counts: nobody knows all types of artifacts, and what one of
    them names must stay as long as it does.
    """
    seen = set[str]()
    for found in (*_known_descriptors(document), *_other_descriptors(document)):
        if found.digest not in seen:
            seen.add(found.digest)
            yield found


def _known_descriptors(document: dict[str, Any]) -> Iterator[Descriptor]:
    for field in _FIELDS:
        value = document.get(field)
        if value is None:
            continue
        if isinstance(value, dict) and field == "config":
            yield _descriptor(value, field)
        elif isinstance(value, list) and field != "config":
            yield from (_descriptor(each, f"{field}[{at}]") for at, each in enumerate(value))
        else:
            raise InvalidManifest(
                f"{field} is not a {'descriptor' if field == 'config' else 'list'}"
            )


def _descriptor(value: Any, field: str) -> Descriptor:
    """Return what a descriptor says; raise InvalidManifest unless it has what every one has."""
    if not isinstance(value, dict):
        raise InvalidManifest(f"{field} is not a descriptor")
    digest, size, media_type = value.get("digest"), value.get("size"), value.get("mediaType")
    if not isinstance(digest, str) or not is_digest(digest):
        raise InvalidManifest(f"{field}.digest is not a digest of sha256 or sha512")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise InvalidManifest(f"{field}.size is not a number of bytes")
    if not isinstance(media_type, str) or not media_type:
        raise InvalidManifest(f"{field}.mediaType is not a media type")
    is_elsewhere = bool(value.get("urls")) or _ELSEWHERE.search(media_type) is not None
    return Descriptor(
        digest=digest,
        size=size,
        media_type=media_type,
        is_required=not is_elsewhere and not _has_data(value),
    )


def _has_data(value: dict[str, Any]) -> bool:
    """Tell whether a descriptor carries its content."""
    data = value.get("data")
    if not isinstance(data, str):
        return False
    try:
        content = base64.b64decode(data, validate=True)
    except (ValueError, binascii.Error):
        return False
    digest: str = value["digest"]
    return digest_of(content, algorithm=digest.partition(":")[0]) == digest


def _other_descriptors(document: dict[str, Any]) -> Iterator[Descriptor]:
    """Yield what looks like a descriptor in fields that no known manifest has."""
    waiting = [value for key, value in document.items() if key not in {*_FIELDS, "subject"}]
    waiting += [value for key in _FIELDS for value in _inside(document.get(key))]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            digest = value.get("digest")
            if isinstance(digest, str) and is_digest(digest):
                yield Descriptor(digest=digest, is_required=False)
            waiting.extend(value.values())


def _inside(value: Any) -> list[Any]:
    """Return the values within descriptors, which may hold further ones."""
    descriptors = value if isinstance(value, list) else [value]
    return [each for one in descriptors if isinstance(one, dict) for each in one.values()]


def _subject(document: dict[str, Any]) -> str | None:
    if document.get("subject") is None:
        return None
    return _descriptor(document["subject"], "subject").digest


def _artifact_type(document: dict[str, Any], media_type: str) -> str | None:
    own = document.get("artifactType")
    if own is not None and not isinstance(own, str):
        raise InvalidManifest("artifactType is not a string")
    if own or media_type in INDEX_TYPES:
        return own or None
    config = document.get("config")
    return config.get("mediaType") if isinstance(config, dict) else None


def _annotations(document: dict[str, Any]) -> dict[str, Any] | None:
    annotations = document.get("annotations")
    if annotations is None:
        return None
    if not isinstance(annotations, dict) or not all(
        isinstance(value, str) for value in annotations.values()
    ):
        raise InvalidManifest("annotations are not strings by their names")
    return annotations
