"""Archives of images: what is unpacked stays in its folder, whatever its author wished."""

import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from hublet.core.config.kinds import ImageSource
from hublet.runtime.errors import CannotRun
from hublet.runtime.images import layers, rootfs


def entry(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o600
) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.mode = kind, link, mode
    return found


def an_archive(path: Path, *entries: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as file:
        for each in entries:
            content = b"written" if each.isreg() else b""
            each.size = len(content)
            file.addfile(each, BytesIO(content))
    return path


def unpack(archive: Path, *, into: Path) -> None:
    with archive.open("rb") as file:
        layers.refuse_links(layers.unpack(file, into=into, budget=layers.UnpackBudget()))


def root_of(target: str, *, cache: Path) -> Path:
    return rootfs.get_image(target, cache=cache).root


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    found = tmp_path / "outside"
    found.mkdir()
    (found / "file").write_text("untouched")
    (found / "file").chmod(0o600)
    return found


@pytest.fixture
def into(tmp_path: Path) -> Path:
    (tmp_path / "into").mkdir()
    return tmp_path / "into"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("/absolute", id="an absolute name"),
        pytest.param("../beside", id="a name that goes up"),
        pytest.param("a/../../beside", id="a name that goes up in the middle"),
    ],
)
def test_a_name_that_leads_out_is_refused(tmp_path: Path, into: Path, name: str) -> None:
    archive = an_archive(tmp_path / "a.tar", entry(name))
    with pytest.raises(CannotRun) as refusal:
        unpack(archive, into=into)
    assert str(refusal.value) == f"The image has a file that lies outside of it: {name}."
    assert list(into.iterdir()) == []


def test_a_way_through_a_link_stays_inside(tmp_path: Path, into: Path, outside: Path) -> None:
    link = entry("link", tarfile.SYMTYPE, str(outside))
    unpack(an_archive(tmp_path / "a.tar", link, entry("link/new")), into=into)
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert (into / str(outside).lstrip("/") / "new").read_text() == "written"


def test_a_file_takes_the_place_of_a_link(tmp_path: Path, into: Path, outside: Path) -> None:
    link = entry("file", tarfile.SYMTYPE, str(outside / "file"))
    unpack(an_archive(tmp_path / "a.tar", link, entry("file")), into=into)
    assert (outside / "file").read_text() == "untouched"
    assert (into / "file").read_text() == "written"


def test_a_second_name_of_a_link_changes_nothing_outside(
    tmp_path: Path, into: Path, outside: Path
) -> None:
    link = entry("link", tarfile.SYMTYPE, str(outside / "file"))
    again = entry("again", tarfile.LNKTYPE, "link", mode=0o777)
    unpack(an_archive(tmp_path / "a.tar", link, again), into=into)
    assert (outside / "file").stat().st_mode & 0o777 == 0o600


def test_a_second_name_of_a_file_outside_is_refused(
    tmp_path: Path, into: Path, outside: Path
) -> None:
    archive = an_archive(tmp_path / "a.tar", entry("a", tarfile.LNKTYPE, "../outside/file"))
    with pytest.raises(CannotRun, match=r"\.\./outside/file"):
        unpack(archive, into=into)


def test_a_second_name_of_a_device_is_refused(tmp_path: Path, into: Path) -> None:
    device, again = entry("null", tarfile.CHRTYPE), entry("again", tarfile.LNKTYPE, "null")
    with pytest.raises(CannotRun, match=r"of what is no file: again\.$"):
        unpack(an_archive(tmp_path / "a.tar", device, again), into=into)
    assert list(into.iterdir()) == []


def test_devices_are_left_out_and_files_can_be_read(tmp_path: Path, into: Path) -> None:
    archive = an_archive(
        tmp_path / "a.tar",
        entry(".", tarfile.DIRTYPE),
        entry("dev", tarfile.DIRTYPE, mode=0o700),
        entry("dev/null", tarfile.CHRTYPE),
        entry("dev/pipe", tarfile.FIFOTYPE),
        entry("tool", mode=0o6711),
        entry("link", tarfile.SYMTYPE, "/bin/tool"),
    )
    unpack(archive, into=into)
    modes = {
        path.relative_to(into).as_posix(): oct(path.lstat().st_mode & 0o7777)
        for path in into.rglob("*")
        if not path.is_symlink()
    }
    assert modes == {"dev": "0o755", "tool": "0o755"}
    assert (into / "link").readlink() == Path("/bin/tool")


def test_an_archive_that_was_replaced_is_another_image(tmp_path: Path) -> None:
    archive, cache = tmp_path / "a.tar", tmp_path / "cache"
    first = root_of(str(an_archive(archive, entry("one"))), cache=cache)
    assert root_of(str(archive), cache=cache) == first
    archive.unlink()
    second = root_of(str(an_archive(archive, entry("two"))), cache=cache)
    assert [path.name for path in first.iterdir()] == ["one"]
    assert [path.name for path in second.iterdir()] == ["two"]


def test_an_archive_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_text("no archive")
    for name in ("a.tar", "missing.tar"):
        with pytest.raises(CannotRun, match=r"^The image cannot be read: "):
            root_of(str(tmp_path / name), cache=tmp_path / "cache")


@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param("python:3.12", "/exact", id="the first that fits counts"),
        pytest.param("python:3.11", "/python", id="a star stands for anything"),
        pytest.param("ubuntu", "host", id="also for all of it"),
    ],
)
def test_a_name_is_looked_up(name: str, target: str) -> None:
    sources = [
        ImageSource(pattern="python:3.12", target="/exact"),
        ImageSource(pattern="python:*", target="/python"),
        ImageSource(pattern="*", target="host"),
    ]
    assert rootfs.target_of(sources, name) == target
