"""The layers of OCI images: each upon those before it, and nothing beside the image."""

import gzip
import os
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from hublet.runtime.errors import CannotRun
from hublet.runtime.images import layers, rootfs
from runtime.images.layouts import a_layer, a_layout, entry, files_of, folder, refusal, symlink


@pytest.fixture
def get(tmp_path: Path) -> Callable[[Path], rootfs.Image]:
    return lambda target: rootfs.get_image(str(target), cache=tmp_path / "cache")


@pytest.fixture
def unpacked(tmp_path: Path, get: Callable[[Path], rootfs.Image]) -> Callable[..., dict[str, str]]:
    """Return what an image of these layers holds."""
    return lambda *of_layers: files_of(get(a_layout(tmp_path / "layout", *of_layers)))


def layer_root(image: rootfs.Image) -> Path:
    """Return the folder of the uppermost layer of an image."""
    assert image.folder is not None
    return rootfs.load_layers(image.folder)[-1].root


@pytest.mark.parametrize(
    "pack",
    [
        pytest.param(lambda content: content, id="plain layers"),
        pytest.param(gzip.compress, id="layers with gzip"),
    ],
)
def test_a_later_layer_lies_upon_an_earlier_one(
    unpacked: Callable[..., dict[str, str]], pack: Callable[[bytes], bytes]
) -> None:
    first = a_layer(folder("etc"), entry("etc/a", "one"), entry("etc/b", "one"))
    second = a_layer(entry("etc/b", "two"), symlink("c", "etc/b"))
    assert unpacked(pack(first), pack(second)) == {
        "etc": "/",
        "etc/a": "one",
        "etc/b": "two",
        "c": "-> etc/b",
    }


@pytest.mark.parametrize(
    ("second", "left"),
    [
        pytest.param([entry("d/.wh.a")], {"d", "d/b", "f"}, id="a file is gone"),
        pytest.param([entry(".wh.d")], {"f"}, id="a folder is gone with all in it"),
        pytest.param([entry("d/.wh..wh..opq")], {"d", "f"}, id="all in a folder is gone"),
        pytest.param(
            [entry("d/new"), entry("d/.wh..wh..opq")],
            {"d", "d/new", "f"},
            id="what the same layer adds before stays",
        ),
        pytest.param(
            [entry("d/.wh..wh..opq"), entry("d/new")],
            {"d", "d/new", "f"},
            id="what the same layer adds after stays",
        ),
        pytest.param(
            [entry("d/new"), entry(".wh.d")],
            {"d", "d/new", "f"},
            id="a folder that is made anew keeps only what is new",
        ),
        pytest.param([entry(".wh.missing")], {"d", "d/a", "d/b", "f"}, id="nothing is gone"),
        pytest.param([entry("x/.wh..wh..opq")], {"d", "d/a", "d/b", "f", "x"}, id="a new folder"),
        pytest.param([entry(".wh..wh.plnk")], {"d", "d/a", "d/b", "f"}, id="a note of aufs"),
        pytest.param([entry("d")], {"d", "f"}, id="a file in the place of a folder"),
        pytest.param([folder("f")], {"d", "d/a", "d/b", "f"}, id="a folder in that of a file"),
    ],
)
def test_a_layer_takes_away(
    unpacked: Callable[..., dict[str, str]],
    second: list[tuple[tarfile.TarInfo, bytes]],
    left: set[str],
) -> None:
    first = a_layer(folder("d"), entry("d/a"), entry("d/b"), entry("f"))
    assert set(unpacked(first, a_layer(*second))) == left


def test_a_folder_takes_the_place_of_a_link(
    unpacked: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    first = a_layer(symlink("d", str(tmp_path / "outside")))
    second = a_layer(folder("d"), entry("d/a", "mine"))
    assert unpacked(first, second) == {"d": "/", "d/a": "mine"}
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_link_that_stays_inside_is_followed(unpacked: Callable[..., dict[str, str]]) -> None:
    first = a_layer(folder("usr/lib"), symlink("lib", "usr/lib"))
    assert unpacked(first, a_layer(entry("lib/a", "x"))) == {
        "usr": "/",
        "usr/lib": "/",
        "usr/lib/a": "x",
        "lib": "-> usr/lib",
    }


def test_a_second_name_keeps_the_content_when_the_first_is_replaced(
    unpacked: Callable[..., dict[str, str]],
) -> None:
    first = a_layer(entry("a", "one"), entry("b", kind=tarfile.LNKTYPE, link="a"))
    assert unpacked(first, a_layer(entry("a", "two"))) == {"a": "two", "b": "one"}


def test_a_file_keeps_its_time_and_can_be_read(
    tmp_path: Path, get: Callable[[Path], rootfs.Image]
) -> None:
    member, content = entry("tool", "x")
    member.mode = 0o6711
    image = get(a_layout(tmp_path / "layout", a_layer((member, content))))
    seen = (layer_root(image) / "tool").stat()
    assert (oct(seen.st_mode & 0o7777), seen.st_mtime) == ("0o755", 1_000_000_000)


@pytest.mark.parametrize(
    ("hostile", "sentence"),
    [
        pytest.param([entry("/a")], "a file that lies outside of it: /a.", id="an absolute name"),
        pytest.param([entry("../a")], "a file that lies outside of it: ../a.", id="a way up"),
        pytest.param([folder("..")], "a file that lies outside of it: ...", id="what is above"),
        pytest.param([entry("d/..")], "a file that lies outside of it: d/...", id="a way back"),
        pytest.param(
            [symlink("a", "b"), symlink("b", "a"), entry("a/c")],
            "links that go round in circles: a.",
            id="a link to itself",
        ),
        pytest.param([entry("d/" * 300 + "f")], "too long: " + "d/" * 50 + "…", id="a deep way"),
        pytest.param(
            [entry("d/.wh...")], "The image removes what has no name: .wh....", id="a removal of .."
        ),
        pytest.param(
            [entry("d/.wh..")], "The image removes what has no name: .wh...", id="a removal of ."
        ),
        pytest.param(
            [entry("d/.wh.")],
            "The image removes what has no name: .wh..",
            id="a removal of nothing",
        ),
        pytest.param(
            [entry("a", kind=tarfile.LNKTYPE, link="/etc/passwd")],
            "lies outside of it: /etc/passwd.",
            id="a second name of a file outside",
        ),
        pytest.param(
            [entry("n", kind=tarfile.CHRTYPE), entry("a", kind=tarfile.LNKTYPE, link="n")],
            "a second name of what is no file: a.",
            id="a second name of a device",
        ),
    ],
)
def test_a_hostile_layer_is_refused(
    tmp_path: Path,
    get: Callable[[Path], rootfs.Image],
    hostile: list[tuple[tarfile.TarInfo, bytes]],
    sentence: str,
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    assert refusal(get, a_layout(tmp_path / "layout", a_layer(*hostile))).endswith(sentence)
    assert outside.is_dir()
    left = [path for path in (tmp_path / "cache").rglob("*") if path.is_dir()]
    assert [path.name for path in left if path.suffix] == []


def test_folders_are_open_whatever_the_hub_closes(
    tmp_path: Path, get: Callable[[Path], rootfs.Image]
) -> None:
    before = os.umask(0o077)
    try:
        root = layer_root(get(a_layout(tmp_path / "layout", a_layer(entry("a/b")))))
    finally:
        os.umask(before)
    assert [oct(path.stat().st_mode & 0o777) for path in (root, root / "a")] == ["0o755"] * 2


def test_devices_are_left_out(unpacked: Callable[..., dict[str, str]]) -> None:
    device, pipe = entry("null", kind=tarfile.CHRTYPE), entry("pipe", kind=tarfile.FIFOTYPE)
    assert unpacked(a_layer(device, pipe, entry("a"))) == {"a": ""}


@pytest.mark.parametrize(
    "budget",
    [
        pytest.param(layers.UnpackBudget(entries=1), id="too many entries"),
        pytest.param(layers.UnpackBudget(size=5), id="too much content"),
    ],
)
def test_a_layer_beyond_the_limit_is_refused(tmp_path: Path, budget: layers.UnpackBudget) -> None:
    layer = BytesIO(a_layer(entry("a", "abc"), entry("b", "abc")))
    with pytest.raises(CannotRun, match=r"^The image is too large to be unpacked\.$"):
        layers.unpack(layer, into=tmp_path, budget=budget)


def test_the_limit_is_that_of_all_layers_together(tmp_path: Path) -> None:
    budget = layers.UnpackBudget(entries=2, size=6)
    for name in ("a", "b"):
        layers.unpack(BytesIO(a_layer(entry(name, "abc"))), into=tmp_path, budget=budget)
    assert budget == layers.UnpackBudget(entries=0, size=0)


def test_a_name_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    header = tarfile.TarInfo("long")
    header.type, header.size = tarfile.XHDTYPE, 2**30
    layer = gzip.compress(header.tobuf() + bytes(2**12))
    with pytest.raises(CannotRun, match=r"^The image has a name that is too long\.$"):
        layers.unpack(BytesIO(layer), into=tmp_path, budget=layers.UnpackBudget())


@pytest.mark.parametrize(
    ("layer", "sentence"),
    [
        pytest.param(
            b"\x28\xb5\x2f\xfd" + bytes(600),
            "The image cannot be read: Compressed file ended before the end-of-stream marker "
            "was reached.",
            id="broken zstd",
        ),
        pytest.param(
            gzip.compress(a_layer(entry("a", "x" * 9999)))[:-20],
            "The image cannot be read: Compressed file ended before the end-of-stream marker "
            "was reached.",
            id="cut off",
        ),
    ],
)
def test_a_layer_of_another_form_is_refused(
    tmp_path: Path, get: Callable[[Path], rootfs.Image], layer: bytes, sentence: str
) -> None:
    assert refusal(get, a_layout(tmp_path / "layout", layer)) == sentence
