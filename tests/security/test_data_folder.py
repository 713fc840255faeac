"""What other users of the machine may see of a hub's data folder: nothing."""

import os
import stat
from pathlib import Path

import pytest

from hublet.core import startup
from hublet.core.config import Settings, load
from hublet.core.database.migrations import migrate
from hublet.core.startup import CannotStart, open_folder, open_hub


def settings_in(folder: Path) -> Settings:
    return load({"database.data_dir": folder}, environ={})


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_files_in(folder: Path) -> list[str]:
    """Return what other users could read or enter, if the folder itself were open."""
    return sorted(str(each.name) for each in folder.iterdir() if mode_of(each) & 0o077)


async def test_a_new_folder_and_all_in_it_are_closed(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    async with open_hub(settings_in(folder)) as database:
        await migrate(database)
        names = {each.name for each in folder.iterdir()}
        assert {"hub.db", "hub.db-wal", "hub.db-shm", "secret.keys"} <= names
        assert (mode_of(folder), open_files_in(folder)) == (0o700, [])


async def test_a_folder_that_was_open_is_closed_at_the_start(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    async with open_hub(settings_in(folder)) as database:
        await migrate(database)
    for name in ("repos", "blobs", "mail"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "hublet.toml").write_text("")
    for path in [folder, *folder.iterdir()]:
        path.chmod(0o755 if path.is_dir() else 0o644)

    async with open_hub(settings_in(folder)):
        assert (mode_of(folder), open_files_in(folder)) == (0o700, [])


def test_what_a_link_leads_to_is_left_alone(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("not ours")
    elsewhere.chmod(0o644)
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "link").symlink_to(elsewhere)
    open_folder(folder)

    assert mode_of(elsewhere) == 0o644


@pytest.mark.parametrize("name", ["", "hub.db"], ids=["the folder", "a file"])
def test_what_cannot_be_closed_is_refused_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "hub.db").touch(mode=0o644)
    (tmp_path / "hub.db").chmod(0o644)
    tmp_path.chmod(0o755)
    foreign = tmp_path / name
    chmod = Path.chmod

    def refuse(path: Path, mode: int) -> None:
        # As the kernel does for what belongs to somebody else.
        if path == foreign:
            raise PermissionError(1, os.strerror(1))
        chmod(path, mode)

    monkeypatch.setattr(startup.Path, "chmod", refuse)
    with pytest.raises(CannotStart) as refused:
        open_folder(tmp_path)

    mode = "600" if name else "700"
    assert str(refused.value) == (
        f"{foreign} is open to other users, and this one may not close it (Operation not "
        f"permitted): run chmod {mode} {foreign} as its owner, or choose a folder of your own with "
        "--data-dir."
    )
