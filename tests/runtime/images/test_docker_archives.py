"""Archives as Docker wrote them before it wrote OCI layouts."""

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
    a_layer,
    an_archive,
    entry,
    files_of,
    folder,
    refusal,
)


@pytest.fixture
def get(tmp_path: Path) -> Callable[[Path], rootfs.Image]:
    return lambda target: rootfs.get_image(str(target), cache=tmp_path / "cache")


def a_docker_archive(
    place: Path, *of_layers: bytes, said: bytes | None = None, platform: dict[str, str] = HERE
) -> Path:
    """What `docker save` made before it wrote layouts; `said` are other digests."""
    place.mkdir()
    names = [f"{number}/layer.tar" for number in range(len(of_layers))]
    for name, layer in zip(names, of_layers, strict=True):
        (place / name).parent.mkdir()
        (place / name).write_bytes(layer)
    digests = [f"sha256:{hashlib.sha256(said or layer).hexdigest()}" for layer in of_layers]
    config = platform | {"config": {"Cmd": ["a"]}, "rootfs": {"diff_ids": digests}}
    (place / "config.json").write_text(json.dumps(config))
    manifest = [{"Config": "config.json", "RepoTags": ["a:1"], "Layers": names}]
    (place / "manifest.json").write_text(json.dumps(manifest))
    return an_archive(place)


def test_an_archive_of_docker_is_an_image(
    tmp_path: Path, get: Callable[[Path], rootfs.Image]
) -> None:
    both = a_layer(entry("a"), entry("b", "1")), a_layer(entry(".wh.a"), entry("b", "2"))
    image = get(a_docker_archive(tmp_path / "saved", *both))
    assert files_of(image) == {"b": "2"}
    assert image.defaults == ImageDefaults(command=("a",))


def test_a_damaged_archive_of_docker_is_refused(
    tmp_path: Path, get: Callable[[Path], rootfs.Image]
) -> None:
    archive = a_docker_archive(tmp_path / "saved", a_layer(entry("a")), said=b"other")
    digest = hashlib.sha256(b"other").hexdigest()
    assert refusal(get, archive) == f"The image is damaged: sha256:{digest} has other content."


def test_an_archive_of_docker_for_another_machine_is_refused(
    tmp_path: Path, get: Callable[[Path], rootfs.Image]
) -> None:
    archive = a_docker_archive(tmp_path / "saved", platform=ELSEWHERE)
    sentence = f"The image is for linux/mips, and this machine is linux/{oci.machine()}."
    assert refusal(get, archive) == sentence


@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        pytest.param([], "The image file has 0 images; it needs exactly one.", id="no image"),
        pytest.param([{}, {}], "The image file has 2 images; it needs exactly one.", id="two"),
        pytest.param(
            [{"Config": "../../outside"}],
            "The image has a file that lies outside of it: ../../outside.",
            id="a configuration outside",
        ),
        pytest.param(
            [{"Config": "config.json", "Layers": ["/etc/passwd"]}],
            "The image has a file that lies outside of it: /etc/passwd.",
            id="a layer outside",
        ),
        pytest.param({}, "The image does not keep to the OCI image specification.", id="no list"),
    ],
)
def test_an_archive_of_docker_without_sense_is_refused(
    tmp_path: Path, get: Callable[[Path], rootfs.Image], manifest: object, sentence: str
) -> None:
    place = tmp_path / "saved"
    a_docker_archive(place, a_layer(entry("a")))
    (place / "manifest.json").write_text(json.dumps(manifest))
    assert refusal(get, an_archive(place)) == sentence


def test_a_root_with_a_file_of_that_name_stays_a_root(
    tmp_path: Path, get: Callable[[Path], rootfs.Image]
) -> None:
    archive = tmp_path / "root.tar"
    archive.write_bytes(a_layer(folder("usr"), entry("manifest.json", "[]")))
    assert files_of(get(archive)) == {"usr": "/", "manifest.json": "[]"}
