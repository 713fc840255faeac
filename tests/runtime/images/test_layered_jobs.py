"""Jobs in images that have layers: all see the same layers, nobody changes them."""

import asyncio
import os
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path
from time import time

import pytest

from hublet.core.config.kinds import ImageSource
from hublet.runtime.attach.attachments import attach
from hublet.runtime.images import cache as images_cache
from hublet.runtime.images import rootfs
from hublet.runtime.images.layer_cache import has_layer
from hublet.runtime.records import AttachRequest, BindMount, Runner
from hublet.runtime.sandbox.runner import sandbox_runner
from patience import SOON_SECONDS
from runtime.attempts import Run, an_order, outcome
from runtime.images.layouts import (
    a_layer,
    a_layout,
    entry,
    folder,
    links_of_this_machine,
    symlink,
)
from runtime.runner_contract import shell

pytestmark = pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="bubblewrap is not installed."
)
USR = BindMount(source=Path("/usr"), target="/usr", read_only=True)
HOUR = timedelta(hours=1)


@pytest.fixture(params=["overlay", "merged"])
def runner(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Runner:
    if request.param == "merged":
        monkeypatch.setattr(rootfs, "is_usable", lambda _cache: False)
    layout = a_layout(
        tmp_path / "layout",
        a_layer(folder("usr"), entry("a", "one"), entry("b", "one"), *links_of_this_machine()),
        a_layer(entry("a", "two"), entry(".wh.b"), folder("mnt"), symlink("data", "/mnt")),
    )
    images = [ImageSource(pattern="*", target=str(layout))]
    return sandbox_runner(tmp_path / "hub", image_map=images, network=False)


async def launch(runner: Runner, tmp_path: Path, script: str) -> Run:
    order = an_order(tmp_path / "hub", *shell(script), binds=(USR,))
    return Run(runner=runner, order=order, handle=await runner.launch(order))


async def test_a_job_sees_its_layers_and_cannot_change_them(runner: Runner, tmp_path: Path) -> None:
    script = "cat /a; echo; ls /b; touch /a /mnt/new; touch /new; echo mine > ~/x; cat ~/x; ls /proc/1/fd"
    seen, lines = await outcome(runner, tmp_path / "hub", *shell(script), binds=(USR,))
    assert seen.exit_code == 0, lines
    assert (lines[0], "mine" in lines) == ("two", True)
    refused = [line for line in lines if "Read-only" in line or "denied" in line]
    assert len(refused) == 2, lines


async def test_a_volume_is_mounted_where_the_image_has_nothing(
    runner: Runner, tmp_path: Path
) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "x").write_text("volume")
    volume.chmod(0o755)
    deep = BindMount(source=volume, target="/srv/models/x", read_only=True)
    script = "cat /srv/models/x/x; echo; cat /a; echo"
    seen, lines = await outcome(runner, tmp_path / "hub", *shell(script), binds=(USR, deep))
    assert (seen.exit_code, lines) == (0, ["volume", "two"])


async def test_two_jobs_share_the_layers_at_the_same_time(runner: Runner, tmp_path: Path) -> None:
    runs = await asyncio.gather(
        *(launch(runner, tmp_path, f"echo {n}; cat /a; sleep 60") for n in (1, 2))
    )
    for number, run in zip((1, 2), runs, strict=True):
        await run.prints(str(number))
        await runner.stop(run.handle, grace_seconds=0)
        await run.ended()
    layers = tmp_path / "hub" / "jobs" / "images" / "layers"
    assert len([path for path in layers.iterdir() if path.is_dir()]) == 2


async def test_who_attaches_to_a_job_sees_the_same_root(runner: Runner, tmp_path: Path) -> None:
    run = await launch(runner, tmp_path, "echo ready; sleep 60")
    await run.prints("ready")
    async with asyncio.timeout(SOON_SECONDS):
        while (point := await runner.attach_point(run.handle)) is None:
            await asyncio.sleep(0.02)
    request = AttachRequest(argv=("grep", "-q", "two", "/a"), environment={"PATH": "/usr/bin:/bin"})
    visit = await attach(point, request, is_plain=False)
    try:
        assert await visit.ended() == 0
    finally:
        visit.close()
        await visit.wait_closed()
        await runner.remove(run.handle)


async def test_layers_of_a_running_job_stay_whatever_the_limit_is(
    runner: Runner, tmp_path: Path
) -> None:
    run = await launch(runner, tmp_path, "echo ready; sleep 60")
    await run.prints("ready")
    cache = tmp_path / "hub" / "jobs" / "images"
    grow_old(cache, 2 * HOUR)

    prune(cache, attempts=[run.order.folder])
    assert len(layers_in(cache)) == 2
    await runner.remove(run.handle)
    prune(cache, attempts=[])
    assert layers_in(cache) == []


def grow_old(cache: Path, age: timedelta) -> None:
    moment = time() - age.total_seconds()
    for note in cache.rglob("*.used"):
        os.utime(note, (moment, moment))


def layers_in(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "layers").iterdir() if path.is_dir())


def prune(cache: Path, *, attempts: list[Path], max_bytes: int = 0) -> None:
    images_cache.prune(cache, image_map=(), attempts=attempts, max_bytes=max_bytes)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with two images of one layer of their own, and one that they share."""
    for name, content in (("old", "1" * 300), ("new", "2" * 300)):
        shared, own = a_layer(entry("shared", "0" * 300)), a_layer(entry(name, content))
        layout = a_layout(tmp_path / name, shared, own)
        attempt = tmp_path / f"attempt-{name}"
        attempt.mkdir()
        images_cache.acquire_image(str(layout), cache=tmp_path / "cache", attempt=attempt)
        if name == "old":
            grow_old(tmp_path / "cache", 3 * HOUR)
    return tmp_path / "cache"


@pytest.mark.parametrize(
    ("max_bytes", "left"),
    [
        pytest.param(900, 3, id="there is room for all"),
        pytest.param(899, 2, id="the one that was used before goes, without what is shared"),
        pytest.param(0, 2, id="one that was just used stays in any case"),
    ],
)
def test_the_image_that_was_not_used_for_the_longest_time_goes_first(
    cache: Path, max_bytes: int, left: int
) -> None:
    prune(cache, attempts=[], max_bytes=max_bytes)
    assert len(layers_in(cache)) == left


def test_a_layer_that_somebody_was_promised_stays(cache: Path) -> None:
    grow_old(cache, 2 * HOUR)
    name = layers_in(cache)[0]
    assert has_layer(cache, name.replace("-", ":"))
    prune(cache, attempts=[])
    assert layers_in(cache) == [name]


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root becomes somebody else.")
def test_who_is_not_root_mounts_layers_and_runs_bubblewrap_in_them(tmp_path: Path) -> None:
    program = Path(__file__).parents[3] / "src" / "hublet" / "runtime"
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if python is None:
        pytest.skip("There is no Python that everybody may run.")
    shutil.copytree(program / "shim", tmp_path / "runtime" / "shim")
    for layer, name in (("0", "a"), ("1", "b")):
        (tmp_path / "image" / layer).mkdir(parents=True)
        (tmp_path / "image" / layer / name).write_text(layer)
    (tmp_path / "mounted").mkdir()
    script = f"""
import os, sys
sys.path.append({str(tmp_path / "runtime")!r})
from shim.child import mount_layers
mount_layers([{str(tmp_path / "image")!r}, "1:0", "", {str(tmp_path / "mounted")!r}], is_root=False)
words = ["bwrap", "--unshare-user", "--disable-userns", "--uid", "1000", "--ro-bind", "/", "/"]
os.execvp("bwrap", [*words, "ls", {str(tmp_path / "mounted")!r}])
"""
    for path in (tmp_path, *tmp_path.parents, *tmp_path.rglob("*")):
        if path.stat().st_uid == 0 and not path.stat().st_mode & 0o001 and path.is_dir():
            path.chmod(path.stat().st_mode | 0o055)
    done = subprocess.run(
        [python, "-c", script],
        check=False,
        user=65534,
        group=65534,
        extra_groups=[],
        capture_output=True,
    )
    if b"Operation not permitted" in done.stderr:
        pytest.skip("This machine has no user namespaces for everybody.")
    assert (done.stdout.split(), done.stderr) == ([b"a", b"b"], b"")
