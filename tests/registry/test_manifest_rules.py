"""What a manifest may say: its JSON, its type, its descriptors."""

import json
from typing import Any

import pytest

from hublet.registry.errors import InvalidManifest
from hublet.registry.manifests import parse_manifest
from registry.images import INDEX, MANIFEST, a_manifest, an_index, descriptor, digest_of

DOCKER = "application/vnd.docker.distribution.manifest.v2+json"


def parse(content: bytes, content_type: str = MANIFEST) -> Any:
    return parse_manifest(content, content_type=content_type)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "JSON"),
        (b"\xff\xfe", "JSON"),
        (b"{", "JSON"),
        (b"[" * 100_000, "JSON"),
        (b"[]", "object"),
        (a_manifest(schemaVersion=1), "schemaVersion"),
        (a_manifest(schemaVersion=None), "schemaVersion"),
        (a_manifest(mediaType=7), "mediaType"),
        (a_manifest(mediaType=INDEX), "Content-Type"),
        (a_manifest(layers={}), "layers"),
        (a_manifest(layers=["x"]), "layers[0]"),
        (a_manifest(layers=[descriptor(b"x", digest="md5:1")]), "layers[0].digest"),
        (a_manifest(layers=[descriptor(b"x", size=-1)]), "layers[0].size"),
        (a_manifest(layers=[descriptor(b"x", size=True)]), "layers[0].size"),
        (a_manifest(layers=[descriptor(b"x", mediaType="")]), "layers[0].mediaType"),
        (a_manifest(manifests=[]), "manifests"),
        (a_manifest(subject="x"), "subject"),
        (a_manifest(subject={"digest": "x"}), "subject.digest"),
        (a_manifest(artifactType=1), "artifactType"),
        (a_manifest(annotations={"a": 1}), "annotations"),
        (a_manifest(fsLayers=[]), "first schema"),
    ],
)
def test_a_manifest_that_breaks_a_rule_is_refused_by_its_name(content: bytes, problem: str) -> None:
    with pytest.raises(InvalidManifest) as refused:
        parse(content)

    assert problem in refused.value.message


def test_an_index_has_no_layers() -> None:
    with pytest.raises(InvalidManifest, match="neither layers nor a config"):
        parse(an_index(layers=[]), INDEX)


@pytest.mark.parametrize("content_type", ["", "application/json", "application/octet-stream"])
def test_a_manifest_names_its_type_where_the_request_does_not(content_type: str) -> None:
    assert parse(a_manifest(mediaType=DOCKER), content_type).media_type == DOCKER
    assert parse(a_manifest(mediaType=None), content_type).media_type == MANIFEST
    assert parse(an_index(mediaType=None), content_type).media_type == INDEX


def test_parameters_of_the_content_type_are_dropped() -> None:
    assert parse(a_manifest(), f"{MANIFEST}; charset=utf-8").media_type == MANIFEST


def test_a_layer_that_stands_twice_is_one_reference() -> None:
    parsed = parse(a_manifest(b"a", b"b", b"a"))

    assert [each.digest for each in parsed.references] == [
        digest_of(b"{}"), digest_of(b"a"), digest_of(b"b")
    ]  # fmt: skip


def test_descriptors_in_unknown_places_are_kept_and_not_required() -> None:
    document = {
        "mediaType": "application/vnd.example+json",
        "parts": [{"deep": {"digest": digest_of(b"a"), "size": 1}}],
        "other": {"digest": "not one"},
        "subject": descriptor(b"s"),
    }

    parsed = parse(json.dumps(document).encode(), "application/vnd.example+json")

    [only] = parsed.references
    assert (only.digest, only.is_required) == (digest_of(b"a"), False)
    assert parsed.subject == digest_of(b"s")


def test_an_artifact_manifest_needs_its_blobs() -> None:
    document = {
        "mediaType": "application/vnd.oci.artifact.manifest.v1+json",
        "artifactType": "application/vnd.example",
        "blobs": [descriptor(b"a", "text/plain")],
    }

    parsed = parse(json.dumps(document).encode(), "")

    assert [each.is_required for each in parsed.references] == [True]
    assert parsed.artifact_type == "application/vnd.example"


@pytest.mark.parametrize(
    ("content", "artifact_type"),
    [
        (a_manifest(), "application/vnd.oci.image.config.v1+json"),
        (a_manifest(artifactType="a/b"), "a/b"),
        (an_index(artifactType="a/b"), "a/b"),
        (an_index(), None),
    ],
)
def test_the_type_of_an_artifact(content: bytes, artifact_type: str | None) -> None:
    assert parse(content, "").artifact_type == artifact_type


def test_data_that_is_not_what_its_digest_says_does_not_replace_a_blob() -> None:
    parsed = parse(a_manifest(layers=[descriptor(b"x", data="eQ==")]))

    assert [each.is_required for each in parsed.references] == [True, True]
