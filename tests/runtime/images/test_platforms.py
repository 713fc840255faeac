"""Which image of an index is for this machine."""

import json
import platform
from pathlib import Path
from typing import Any

import pytest

from hublet.runtime.errors import CannotRun
from hublet.runtime.images import oci
from runtime.images.layouts import INDEX, a_manifest, add_document, write_index

ATTESTATION = {"os": "unknown", "architecture": "unknown"}


def named(text: str) -> dict[str, str]:
    return dict(zip(("os", "architecture", "variant"), text.split("/"), strict=False))


def choose(layout: Path, *manifests: dict[str, Any]) -> str:
    return oci.read_manifest(write_index(layout, *manifests)).digest


def for_platform(layout: Path, text: str) -> dict[str, Any]:
    of_config = named(text) | {"author": text}
    return a_manifest(layout, platform=of_config) | {"platform": named(text)}


@pytest.mark.parametrize(
    ("machine", "offered", "chosen"),
    [
        ("x86_64", ["linux/arm64", "linux/amd64"], 1),
        ("x86_64", ["windows/amd64", "linux/amd64"], 1),
        ("x86_64", ["linux/amd64/v3", "linux/amd64"], 1),
        ("x86_64", ["linux/amd64/v9"], 0),
        ("x86_64", ["linux/amd64", "linux/amd64"], 0),
        ("aarch64", ["linux/arm/v7", "linux/arm64/v8"], 1),
        ("aarch64", ["linux/arm64"], 0),
        ("armv7l", ["linux/arm/v5", "linux/arm/v6", "linux/arm/v7"], 2),
        ("armv7l", ["linux/arm/v8", "linux/arm/v6"], 1),
        ("armv6l", ["linux/arm/v7", "linux/arm/v5", "linux/arm/v6"], 2),
        ("riscv64", ["linux/amd64", "linux/riscv64"], 1),
    ],
)
def test_the_best_entry_for_the_machine_is_chosen(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    machine: str,
    offered: list[str],
    chosen: int,
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    manifests = [for_platform(tmp_path, each) for each in offered]
    assert choose(tmp_path, *manifests) == manifests[chosen]["digest"]


def test_attestations_are_skipped_and_named_platforms_come_before_unnamed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    unnamed = a_manifest(tmp_path, platform=named("linux/amd64"), Cmd=["unnamed"])
    attestation = a_manifest(tmp_path) | {"platform": ATTESTATION}
    mine = for_platform(tmp_path, "linux/amd64")
    assert choose(tmp_path, attestation, unnamed, mine) == mine["digest"]


def test_entries_without_a_platform_are_judged_by_their_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    other = a_manifest(tmp_path, platform=named("linux/s390x"))
    mine = a_manifest(tmp_path, platform=named("linux/amd64"))
    inner = add_document(tmp_path, {"manifests": [other, mine]}) | {"mediaType": INDEX}
    assert choose(tmp_path, other, inner) == mine["digest"]


def test_a_missing_platform_is_named_with_those_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    offered = [for_platform(tmp_path, each) for each in ("linux/arm64", "linux/arm/v7")]
    with pytest.raises(CannotRun) as refused:
        choose(tmp_path, *offered)
    assert str(refused.value) == (
        "The image has nothing for this machine, linux/amd64; it is for linux/arm64, linux/arm/v7."
    )


def test_what_is_no_image_is_refused(tmp_path: Path) -> None:
    chart = a_manifest(tmp_path, platform={})
    with pytest.raises(CannotRun, match="not an image that can run"):
        choose(tmp_path, chart)


def test_variants_without_end_are_not_all_read(tmp_path: Path) -> None:
    other = [a_manifest(tmp_path, platform=named("linux/mips"), Cmd=[str(n)]) for n in range(51)]
    with pytest.raises(CannotRun, match="too many variants"):
        choose(tmp_path, *other)


def test_a_document_that_was_changed_is_refused(tmp_path: Path) -> None:
    mine = a_manifest(tmp_path)
    place = tmp_path / "blobs" / "sha256" / str(mine["digest"]).removeprefix("sha256:")
    place.write_text(json.dumps({"config": {}, "layers": []}))
    with pytest.raises(CannotRun, match="damaged"):
        choose(tmp_path, mine)
