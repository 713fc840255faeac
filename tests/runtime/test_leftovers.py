"""Whatever a job made of its folder, it can be removed."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hublet.core import folders
from hublet.runtime import attempt_processes
from hublet.runtime.sandbox.runner import sandbox_runner
from runtime.attempts import HOST, launch
from runtime.deep_folders import nested, swept
from runtime.unprivileged import not_root

Remove = Callable[[Path], None]
EACH_WAY = pytest.mark.parametrize(
    "remove",
    [
        pytest.param(attempt_processes.remove_folder, id="after an attempt"),
        pytest.param(folders.remove_tree, id="with its job"),
    ],
)
NEST = "import os\nfor _ in range(5000): os.mkdir('d'); os.chdir('d')"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "attempt-1"


@EACH_WAY
# The second is more than Python may recurse, and more than a path can have.
@pytest.mark.parametrize("depth", [0, 2100])
def test_folders_are_removed_at_any_depth(folder: Path, remove: Remove, depth: int) -> None:
    folder.mkdir(parents=True)
    (folder / "file").touch()
    with nested(folder / "a", depth), nested(folder / "b", depth):
        remove(folder)

        assert list(folder.parent.iterdir()) == []


@EACH_WAY
@pytest.mark.parametrize("mode", [0o000, 0o400, 0o500, 0o300])
def test_what_was_closed_is_removed(folder: Path, remove: Remove, mode: int) -> None:
    closed = folder / "closed"
    (closed / "empty").mkdir(parents=True)
    (closed / "in" / "in").mkdir(parents=True)
    (closed / "in" / "file").touch()
    with not_root(folder.parent):
        for each in (closed / "in" / "in", closed / "in", closed / "empty", closed):
            each.chmod(mode)

        remove(folder)

    assert list(folder.parent.iterdir()) == []


@EACH_WAY
def test_what_links_lead_to_is_left_alone(folder: Path, remove: Remove, tmp_path: Path) -> None:
    (tmp_path / "theirs" / "closed").mkdir(parents=True)
    (tmp_path / "theirs" / "file").touch()
    (tmp_path / "theirs" / "closed").chmod(0)
    folder.mkdir(parents=True)
    for name in ("theirs", "theirs/file", "theirs/closed"):
        (folder / name.replace("/", "-")).symlink_to(tmp_path / name)

    remove(folder)

    assert list(folder.parent.iterdir()) == []
    assert (tmp_path / "theirs" / "file").exists()
    assert (tmp_path / "theirs" / "closed").stat().st_mode & 0o777 == 0


@EACH_WAY
def test_what_is_gone_already_is_fine(folder: Path, remove: Remove) -> None:
    remove(folder)
    folder.parent.mkdir()
    remove(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root makes what is not the hub's.")
def test_what_cannot_be_removed_keeps_nothing_else(folder: Path) -> None:
    # Folders come in no order: some are behind the one that stays.
    for name in ("theirs", *map(str, range(30))):
        (folder / name).mkdir(parents=True)
        (folder / name / "file").touch()
    with not_root(folder.parent, except_for=folder / "theirs"):
        attempt_processes.remove_folder(folder)
        with pytest.raises(PermissionError):
            folders.remove_tree(folder)

    assert [str(path.relative_to(folder)) for path in sorted(folder.rglob("*"))] == [
        "theirs",
        "theirs/file",
    ]


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed.")
async def test_an_attempt_that_nested_folders_is_cleared_away(tmp_path: Path) -> None:
    runner = sandbox_runner(tmp_path, image_map=HOST, network=False)
    with swept(tmp_path / "jobs"):
        run = await launch(runner, tmp_path, "sh", "-c", f'cd /tmp && python3 -c "{NEST}"')
        assert (await run.ended()).exit_code == 0, run.lines()

        await runner.remove(run.handle)

        assert not run.order.folder.exists()
