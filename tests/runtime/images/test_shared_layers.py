"""Layers of images: each unpacked once, shared, and seen by the kernel as we merge them."""

import bz2
import errno
import gzip
import json
import lzma
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from time import monotonic, sleep

import pytest

from hublet.runtime import shim
from hublet.runtime.errors import CannotRun
from hublet.runtime.images import layers, oci, rootfs
from hublet.runtime.images.layer_cache import has_layer
from patience import SOON_SECONDS
from runtime.images.layouts import (
    a_layer,
    a_layout,
    entry,
    files_of,
    folder,
    refusal,
    symlink,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Entry = tuple[tarfile.TarInfo, bytes]
# The mount of a shim, and what is seen in it.
_LIST = """
import json, os, sys
sys.path.append(sys.argv[1])
from shim.child import mount_layers
mount_layers(sys.argv[2:6], is_root=os.geteuid() == 0)
found = {}
for above, folders, files in os.walk(sys.argv[5]):
    for name in folders + files:
        path = os.path.join(above, name)
        kind = "-> " + os.readlink(path) if os.path.islink(path) else "/"
        if not os.path.islink(path) and not os.path.isdir(path):
            kind = open(path).read()
        found[os.path.relpath(path, sys.argv[5])] = kind
print(json.dumps(found))
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def get(cache: Path) -> Callable[[Path], rootfs.Image]:
    return lambda target: rootfs.get_image(str(target), cache=cache)


def second_name(name: str, target: str) -> Entry:
    return entry(name, kind=tarfile.LNKTYPE, link=target)


def mounted_files(image: rootfs.Image, target: Path) -> dict[str, str]:
    """What the kernel shows of the layers of an image, without ours."""
    target.mkdir()
    names = ":".join(str(number) for number in reversed(range(len(image.layers))))
    words = [str(Path(shim.__file__).parents[1]), str(image.root), names, "", str(target)]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _LIST, *words], check=True, capture_output=True
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


BASE = [folder("d"), entry("d/a", "1"), entry("d/b", "1"), entry("f", "1"), folder("run")]
LINKED = [*BASE, folder("var"), symlink("var/run", "/run"), symlink("up", "../../d")]


@pytest.mark.parametrize(
    ("lower", "upper", "changes"),
    [
        pytest.param(BASE, [entry("d/a", "2")], {"d/a": "2"}, id="a file is replaced"),
        pytest.param(BASE, [entry("d/.wh.a")], {"d/a": None}, id="a file is removed"),
        pytest.param(BASE, [entry("d", "2")], {"d": "2", "d/a": None, "d/b": None}, id="a folder"),
        pytest.param(
            BASE,
            [folder("d"), entry("d/c", "2"), entry("d/.wh..wh..opq")],
            {"d/a": None, "d/b": None, "d/c": "2"},
            id="all in a folder is removed, whatever comes first",
        ),
        pytest.param(
            BASE,
            [entry("d/c", "2"), entry(".wh.d")],
            {"d/a": None, "d/b": None, "d/c": "2"},
            id="a folder is made anew",
        ),
        pytest.param(
            LINKED, [entry("var/run/x", "2")], {"run/x": "2"}, id="a name through a link below"
        ),
        pytest.param(
            LINKED, [entry("up/c", "2")], {"d/c": "2"}, id="a link that goes above the root"
        ),
        pytest.param(
            [*LINKED, entry("run/x", "1")],
            [entry("var/run/.wh.x")],
            {"run/x": None},
            id="a removal through a link below",
        ),
        pytest.param(
            [*LINKED, entry("run/x", "1")],
            [entry("var/run/.wh..wh..opq"), entry("var/run/y", "2")],
            {"run/x": None, "run/y": "2"},
            id="all in a folder behind a link",
        ),
        pytest.param(
            LINKED,
            [folder("var/run"), entry("var/run/x", "2")],
            {"var/run": "/", "var/run/x": "2"},
            id="a folder takes the place of a link",
        ),
        pytest.param(
            LINKED,
            [symlink("run", "/d"), entry("var/run/x", "2")],
            {"run": "-> /d", "d/x": "2"},
            id="a link to a link of the same layer",
        ),
        pytest.param(
            BASE, [second_name("g", "d/a")], {"g": "1"}, id="a second name of a file below"
        ),
        pytest.param(
            LINKED,
            [second_name("var/run/g", "up/a"), second_name("h", "var/run/g")],
            {"run/g": "1", "h": "1"},
            id="second names through links below",
        ),
    ],
)
def test_the_kernel_shows_layers_as_they_are_merged(
    tmp_path: Path,
    get: Callable[[Path], rootfs.Image],
    lower: list[Entry],
    upper: list[Entry],
    changes: dict[str, str | None],
) -> None:
    before = files_of(get(a_layout(tmp_path / "one", a_layer(*lower))))
    image = get(a_layout(tmp_path / "two", a_layer(*lower), a_layer(*upper)))
    wanted = {name: kind for name, kind in (before | changes).items() if kind is not None}
    assert files_of(image) == wanted
    if image.layers:
        assert mounted_files(image, tmp_path / "mounted") == wanted


def test_nothing_is_written_through_a_link_of_an_image(
    tmp_path: Path, get: Callable[[Path], rootfs.Image]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("mine")
    way = [symlink("l", str(outside)), symlink("m", "l")]
    hostile = [entry("l/new"), entry("m/.wh.kept"), second_name("x", "l/kept")]
    for each in hostile[:2]:
        get(a_layout(tmp_path / each[0].name[-3:], a_layer(*way), a_layer(each)))
    layout = a_layout(tmp_path / "last", a_layer(*way), a_layer(hostile[2]))
    assert refusal(get, layout) == "The image has a second name of what is no file: x."
    assert [path.name for path in outside.iterdir()] == ["kept"]


def a_zstd_file(content: bytes) -> bytes:
    """Several frames, as some tools write it, with one between them that is skipped."""
    half = len(content) // 2
    skipped = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"note"
    return skipped + zstd.compress(content[:half]) + skipped + zstd.compress(content[half:])


@pytest.mark.parametrize(
    "pack",
    [
        pytest.param(bytes, id="plain"),
        pytest.param(gzip.compress, id="gzip"),
        pytest.param(
            lambda content: gzip.compress(content[:700]) + gzip.compress(content[700:]),
            id="gzip, in parts",
        ),
        pytest.param(zstd.compress, id="zstd"),
        pytest.param(a_zstd_file, id="zstd, in frames"),
        pytest.param(bz2.compress, id="bzip2"),
        pytest.param(lzma.compress, id="xz"),
    ],
)
def test_a_layer_is_known_by_its_first_bytes(
    tmp_path: Path, get: Callable[[Path], rootfs.Image], pack: Callable[[bytes], bytes]
) -> None:
    content = "x" * 5000
    image = get(a_layout(tmp_path / "layout", pack(a_layer(entry("a", content)))))
    assert files_of(image) == {"a": content}


def test_a_window_of_zstd_that_would_fill_the_memory_is_refused(
    tmp_path: Path, get: Callable[[Path], rootfs.Image]
) -> None:
    header = bytes([0x28, 0xB5, 0x2F, 0xFD, 0x00, (31 - 10) << 3]) + bytes(600)
    sentence = refusal(get, a_layout(tmp_path / "layout", header))
    assert sentence.startswith("The image cannot be read: ")
    assert "memory" in sentence


def test_a_layer_is_unpacked_once_for_all_images(
    tmp_path: Path, cache: Path, get: Callable[[Path], rootfs.Image]
) -> None:
    shared = a_layer(entry("a", "1"))
    first = a_layout(tmp_path / "one", shared, a_layer(entry("b")))
    get(first)
    second = a_layout(tmp_path / "two", shared, a_layer(entry("c")))
    manifest = oci.read_manifest(second)
    path, digest = manifest.layers[0]
    path.unlink()
    assert has_layer(cache, digest)
    assert not has_layer(cache, manifest.layers[1][1])
    assert files_of(rootfs.unpack_manifest(manifest, cache=cache)) == {"a": "1", "c": ""}


def test_the_files_of_pulled_layers_are_removed_when_they_are_unpacked(
    tmp_path: Path, cache: Path
) -> None:
    manifest = oci.read_manifest(a_layout(tmp_path / "layout", a_layer(entry("a"))))
    path, digest = manifest.layers[0]
    pulled = cache / "blobs" / "sha256" / path.name
    pulled.parent.mkdir(parents=True)
    pulled.write_bytes(path.read_bytes())
    taken = oci.ImageManifest(
        digest=manifest.digest, layers=((pulled, digest),), config=manifest.config
    )
    assert files_of(rootfs.unpack_manifest(taken, cache=cache)) == {"a": ""}
    assert (pulled.exists(), path.exists()) == (False, True)


def test_a_full_disk_is_told_and_nothing_is_left(
    tmp_path: Path,
    cache: Path,
    get: Callable[[Path], rootfs.Image],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fill(_fd: int, _piece: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(layers, "_write_all", fill)
    sentence = refusal(get, a_layout(tmp_path / "layout", a_layer(entry("a", "x"))))
    assert sentence.startswith("The disk of the hub's machine has no room for the image.")
    assert [path for path in cache.rglob("*") if path.is_dir() and path.name != "layers"] == []


def test_a_sparse_file_counts_as_what_it_becomes(tmp_path: Path) -> None:
    member = tarfile.TarInfo("hole")
    member.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.realsize": str(2**50),
        "GNU.sparse.name": "hole",
    }
    content = b"0\n" + bytes(510)
    archive = tmp_path / "a.tar"
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as file:
        member.size = len(content)
        file.addfile(member, BytesIO(content))
    (tmp_path / "into").mkdir()
    with archive.open("rb") as opened, pytest.raises(CannotRun, match="too large"):
        layers.unpack(opened, into=tmp_path / "into", budget=layers.UnpackBudget())


@pytest.mark.full
def test_a_hub_that_is_killed_while_it_unpacks_leaves_nothing_that_is_taken_for_an_image(
    tmp_path: Path, cache: Path
) -> None:
    # Large enough for a process of its own, and for a moment.
    noise = [entry(f"{number}", os.urandom(1000).hex()) for number in range(1000)]
    layout = a_layout(tmp_path / "layout", a_layer(*noise))
    program = f"""
from pathlib import Path
from hublet.runtime.images import rootfs
rootfs.get_image({str(layout)!r}, cache=Path({str(cache)!r}))
"""
    hub = subprocess.Popen([sys.executable, "-c", program])
    try:
        wait_for(lambda: len(list(cache.glob("layers/*.partial/fs/*"))) > 10)
    finally:
        hub.kill()
        hub.wait()
    image = rootfs.get_image(str(layout), cache=cache)
    assert len(files_of(image)) == 1000
    assert list(cache.rglob("*.partial")) == []


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = monotonic() + SOON_SECONDS
    while not is_so():
        assert monotonic() < deadline
        sleep(0.001)


def test_layers_are_merged_where_the_kernel_mounts_none(
    tmp_path: Path, get: Callable[[Path], rootfs.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rootfs, "is_usable", lambda _cache: False)
    layout = a_layout(tmp_path / "layout", a_layer(*BASE), a_layer(entry("d/.wh.a")))
    image = get(layout)
    assert image.layers == ()
    assert {path.name for path in (image.root / "d").iterdir()} == {"b"}
    assert (image.root / "proc").is_dir()
    assert get(layout) == image
