"""OCI images: which one is taken, that it is unpacked once, and what is refused."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hublet.runtime.images import oci, rootfs
from hublet.runtime.images.oci import ImageDefaults
from runtime.images.layouts import (
    ELSEWHERE,
    HERE,
    INDEX,
    a_layer,
    a_layout,
    a_manifest,
    add_document,
    an_archive,
    entry,
    files_of,
    refusal,
    write_index,
)


@pytest.fixture
def get(tmp_path: Path) -> Callable[[Path], rootfs.Image]:
    return lambda target: rootfs.get_image(str(target), cache=tmp_path / "cache")


def test_a_damaged_layer_is_refused(tmp_path: Path, get: Callable[[Path], rootfs.Image]) -> None:
    layer = a_layer(entry("a", "one"))
    layout = a_layout(tmp_path / "layout", layer)
    digest = hashlib.sha256(layer).hexdigest()
    (layout / "blobs" / "sha256" / digest).write_bytes(a_layer(entry("a", "two")))
    sentence = f"The image is damaged: sha256:{digest} has other content."
    assert refusal(get, layout) == sentence


def test_a_damaged_manifest_is_refused(tmp_path: Path, get: Callable[[Path], rootfs.Image]) -> None:
    layout = tmp_path / "layout"
    manifest = a_manifest(layout)
    write_index(layout, manifest)
    (layout / "blobs" / "sha256" / manifest["digest"].removeprefix("sha256:")).write_text("{}")
    sentence = f"The image is damaged: {manifest['digest']} has other content."
    assert refusal(get, layout) == sentence


@pytest.mark.parametrize(
    "index",
    [
        pytest.param([], id="a list"),
        pytest.param({}, id="without manifests"),
        pytest.param({"manifests": [1]}, id="a manifest that is none"),
        pytest.param({"manifests": [{}]}, id="without a digest"),
        pytest.param({"manifests": [{"digest": "sha256:../../../../etc"}]}, id="a way out"),
        pytest.param({"manifests": [{"digest": "md5:" + "0" * 32}]}, id="another digest"),
    ],
)
def test_an_index_without_sense_is_refused(
    tmp_path: Path, get: Callable[[Path], rootfs.Image], index: object
) -> None:
    layout = a_layout(tmp_path / "layout")
    (layout / "index.json").write_text(json.dumps(index))
    assert refusal(get, layout) == "The image does not keep to the OCI image specification."


def test_an_index_is_not_read_through_a_link(
    tmp_path: Path, get: Callable[[Path], rootfs.Image]
) -> None:
    layout = a_layout(tmp_path / "layout")
    (layout / "index.json").rename(tmp_path / "index.json")
    (layout / "index.json").symlink_to(tmp_path / "index.json")
    assert refusal(get, layout).startswith("The image cannot be read: ")


def test_an_index_beyond_the_limit_is_refused(
    tmp_path: Path, get: Callable[[Path], rootfs.Image]
) -> None:
    layout = a_layout(tmp_path / "layout")
    (layout / "index.json").write_text(" " * (4 * 2**20 + 1))
    assert refusal(get, layout) == "The image describes itself at too great a length."


def test_indexes_without_end_are_refused(
    tmp_path: Path, get: Callable[[Path], rootfs.Image]
) -> None:
    layout = tmp_path / "layout"
    described = a_manifest(layout)
    for _ in range(5):
        described = add_document(layout, {"manifests": [described]}) | {"mediaType": INDEX}
    write_index(layout, described)
    assert refusal(get, layout) == "The image does not keep to the OCI image specification."


def test_of_several_the_one_for_this_machine_is_taken(
    tmp_path: Path, get: Callable[[Path], rootfs.Image]
) -> None:
    layout = tmp_path / "layout"
    other = a_manifest(layout, a_layer(entry("other")), platform=ELSEWHERE) | {
        "platform": ELSEWHERE
    }
    attestation = a_manifest(layout) | {"platform": {"os": "unknown", "architecture": "unknown"}}
    mine = a_manifest(layout, a_layer(entry("mine"))) | {"platform": HERE | {"variant": "v8"}}
    nested = add_document(layout, {"manifests": [other, attestation, mine]})
    image = get(write_index(layout, nested | {"mediaType": INDEX}))
    assert files_of(image) == {"mine": ""}
    assert image.folder is not None
    assert image.folder.stem == str(mine["digest"]).replace(":", "-")


def test_an_image_for_another_machine_is_refused(
    tmp_path: Path, get: Callable[[Path], rootfs.Image]
) -> None:
    layout = tmp_path / "layout"
    write_index(layout, a_manifest(layout, platform=ELSEWHERE))
    sentence = "The image has nothing for this machine, linux/{}; it is for linux/mips."
    assert refusal(get, layout) == sentence.format(oci.machine())


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_an_archive_and_its_folder_are_one_image(
    tmp_path: Path, get: Callable[[Path], rootfs.Image], mode: str
) -> None:
    layout = a_layout(tmp_path / "layout", a_layer(entry("a", "x")), Cmd=["a"])
    archive = an_archive(layout, mode=mode)
    image = get(archive)
    assert files_of(image) == {"a": "x"}
    assert image.defaults == ImageDefaults(command=("a",))
    assert get(archive) == image
    assert get(layout) == image
    folders = [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]
    layers = tmp_path / "cache" / "layers"
    assert {path.resolve() for path in folders} == {image.folder, layers}
    assert len([path for path in layers.iterdir() if path.is_dir()]) == 1
    assert not [path for path in folders if path.name.endswith(".partial")]


def test_an_image_is_unpacked_once(tmp_path: Path, get: Callable[[Path], rootfs.Image]) -> None:
    layer = a_layer(entry("a", "x"))
    layout = a_layout(tmp_path / "layout", layer)
    first = get(layout)
    (layout / "blobs" / "sha256" / hashlib.sha256(layer).hexdigest()).unlink()
    assert get(layout) == first
