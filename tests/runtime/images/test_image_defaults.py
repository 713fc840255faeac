"""What an OCI image says about how it is run, and jobs that run in one."""

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hublet.core.config.kinds import ImageSource
from hublet.core.database import Database
from hublet.runtime.errors import CannotRun
from hublet.runtime.images import rootfs
from hublet.runtime.images.oci import ImageDefaults
from hublet.runtime.records import BindMount
from hublet.runtime.sandbox.runner import sandbox_runner
from jobs.jobs_api import BODY
from runtime.attempts import an_order, outcome
from runtime.images.layouts import (
    a_layer,
    a_layout,
    an_archive,
    files_of,
    folder,
    links_of_this_machine,
    refusal,
)
from runtime.supervisor.scripted_runner import ScriptedRunner
from runtime.supervisor.supervised_jobs import a_job, a_supervisor, set_jobs

needs_bubblewrap = pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="bubblewrap is not installed."
)


@pytest.fixture
def get(tmp_path: Path) -> Callable[[Path], rootfs.Image]:
    return lambda target: rootfs.get_image(str(target), cache=tmp_path / "cache")


def test_an_image_says_how_it_is_run(tmp_path: Path, get: Callable[[Path], rootfs.Image]) -> None:
    image = get(
        a_layout(
            tmp_path / "layout",
            Env=["A=1", "B=x=y", "C=", "D", "../E=1", "=F"],
            WorkingDir="/srv/app",
            Entrypoint=["/bin/sh", "-c"],
            Cmd=["echo"],
            User="root",
        )
    )
    assert image.defaults == ImageDefaults(
        environment={"A": "1", "B": "x=y", "C": "", "D": ""},
        cwd="/srv/app",
        entrypoint=("/bin/sh", "-c"),
        command=("echo",),
    )
    assert files_of(image) == {}
    assert image.folder is not None
    assert (image.folder / rootfs.TOP / "srv" / "app").is_dir()


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"Env": "A=1"}, id="variables that are no list"),
        pytest.param({"Cmd": ["a\0b"]}, id="a word that ends in the middle"),
        pytest.param({"Entrypoint": [1]}, id="a word that is a number"),
        pytest.param({"WorkingDir": "srv"}, id="a folder that depends"),
        pytest.param({"WorkingDir": "/a\0b"}, id="a folder that ends in the middle"),
        pytest.param({"WorkingDir": ["/"]}, id="a folder that is a list"),
    ],
)
def test_a_configuration_without_sense_is_refused(
    tmp_path: Path, get: Callable[[Path], rootfs.Image], config: dict[str, object]
) -> None:
    layout = a_layout(tmp_path / "layout", **config)
    assert refusal(get, layout) == "The image does not keep to the OCI image specification."


@pytest.mark.parametrize(
    ("argv", "given", "said", "runs"),
    [
        pytest.param(
            ("a", "b"), "command", (("e",), ("c",)), ("a", "b"), id="the job's own command"
        ),
        pytest.param((), "arguments", (("e",), ("c",)), ("e", "c"), id="all is the image's"),
        pytest.param(
            ("a",), "arguments", (("e",), ("c",)), ("e", "a"), id="only the arguments are given"
        ),
        pytest.param((), "arguments", ((), ("c",)), ("c",), id="the image has no entrypoint"),
        pytest.param(("a",), "arguments", ((), ("c",)), ("a",), id="arguments alone"),
    ],
)
def test_the_command_is_the_jobs_or_the_images(
    tmp_path: Path,
    argv: tuple[str, ...],
    given: str,
    said: tuple[tuple[str, ...], tuple[str, ...]],
    runs: tuple[str, ...],
) -> None:
    order = an_order(tmp_path, *argv, after_entrypoint=given == "arguments")
    defaults = ImageDefaults(entrypoint=said[0], command=said[1])
    assert rootfs.argv_of(order, rootfs.Image(root=tmp_path, defaults=defaults)) == runs


def test_without_any_command_there_is_nothing_to_run(tmp_path: Path) -> None:
    order = an_order(tmp_path, after_entrypoint=True)
    with pytest.raises(CannotRun, match=r"^The image does not say what to run: give the job a c"):
        rootfs.argv_of(order, rootfs.Image(root=tmp_path))


@needs_bubblewrap
@pytest.mark.parametrize(
    ("argv", "printed"),
    [
        pytest.param((), ["hello from /srv/app as mine, /home/job, of the job"], id="the image's"),
        pytest.param(("sh", "-c", "echo $A"), ["mine"], id="the job's"),
    ],
)
async def test_an_image_runs(tmp_path: Path, argv: tuple[str, ...], printed: list[str]) -> None:
    layout = a_layout(
        tmp_path / "layout",
        gzip.compress(a_layer(folder("usr"), *links_of_this_machine())),
        Env=["A=mine", "B=of the image", "HOME=/root"],
        WorkingDir="/srv/app",
        Entrypoint=["sh", "-c"],
        Cmd=["echo hello from $PWD as $A, $HOME, $B"],
    )
    runner = sandbox_runner(
        tmp_path,
        image_map=[ImageSource(pattern="*", target=str(an_archive(layout)))],
        network=False,
    )
    seen, lines = await outcome(
        runner,
        tmp_path,
        *argv,
        after_entrypoint=not argv,
        environment={"B": "of the job"},
        binds=(BindMount(source=Path("/usr"), target="/usr", read_only=True),),
    )
    assert (seen.exit_code, lines) == (0, printed)


async def test_a_job_without_a_command_leaves_it_to_the_image(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_jobs(database, cores=16)
    runner = ScriptedRunner()
    told = await a_job(database)
    monkeypatch.delitem(BODY, "command")
    untold = await a_job(database, arguments=["a"])
    await a_supervisor(database, runner).step_all()
    orders = [runner.attempts[job_id, 1].order for job_id in (told, untold)]
    assert [(order.argv, order.after_entrypoint) for order in orders] == [
        (("true",), False),
        (("a",), True),
    ]
