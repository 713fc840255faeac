"""Unpacked images stay while somebody may need them, and not for ever."""

import os
import shutil
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from time import time

import pytest

from hublet.core.config.kinds import ImageSource
from hublet.runtime.errors import CannotRun
from hublet.runtime.images import cache as images_cache
from hublet.runtime.images.rootfs import Image
from hublet.runtime.records import BindMount
from hublet.runtime.sandbox.runner import sandbox_runner
from runtime.attempts import Run, an_order
from runtime.images.layouts import (
    a_layer,
    a_layout,
    an_archive,
    entry,
    files_of,
    folder,
    links_of_this_machine,
)
from runtime.runner_contract import shell

needs_bubblewrap = pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="bubblewrap is not installed."
)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def attempt(tmp_path: Path) -> Path:
    folder = tmp_path / "attempt-1"
    folder.mkdir()
    return folder


def an_image(tmp_path: Path, cache: Path, attempt: Path, *, name: str = "layout") -> Image:
    layout = a_layout(tmp_path / name, a_layer(entry("a", name)))
    return images_cache.acquire_image(str(an_archive(layout)), cache=cache, attempt=attempt)


def naming(*targets: Path) -> tuple[ImageSource, ...]:
    return tuple(ImageSource(pattern="*", target=str(target)) for target in targets)


def grow_old(image: Image, age: timedelta) -> None:
    moment = time() - age.total_seconds()
    assert image.folder is not None
    for note in [image.folder.with_name(f"{image.folder.name}.used"), *layer_notes(image.folder)]:
        os.utime(note, (moment, moment))


def layer_notes(folder: Path) -> list[Path]:
    return list((folder.parent / "layers").glob("*.used"))


def sweep(
    cache: Path, *, image_map: Sequence[ImageSource] = (), attempts: Sequence[Path] = ()
) -> None:
    images_cache.prune(cache, image_map=image_map, attempts=attempts)


@pytest.mark.parametrize(
    ("age", "is_named", "stays"),
    [
        pytest.param(DAY - HOUR, False, True, id="no setting names it since today"),
        pytest.param(DAY + HOUR, False, False, id="no setting names it any more"),
        pytest.param(7 * DAY - HOUR, True, True, id="it was used this week"),
        pytest.param(7 * DAY + HOUR, True, False, id="it was not used for a week"),
    ],
)
@pytest.mark.parametrize("kind", ["a layout", "an archive", "an archive of a root"])
def test_an_image_stays_as_long_as_somebody_may_need_it(
    tmp_path: Path,
    cache: Path,
    attempt: Path,
    *,
    kind: str,
    age: timedelta,
    is_named: bool,
    stays: bool,
) -> None:
    target = a_layout(tmp_path / "layout", a_layer(entry("a", "one")))
    if kind != "a layout":
        if kind == "an archive of a root":
            (target / "oci-layout").unlink()
        target = an_archive(target)
    image = images_cache.acquire_image(str(target), cache=cache, attempt=attempt)
    grow_old(image, age)

    sweep(cache, image_map=naming(target if is_named else tmp_path / "another"))

    assert image.root.exists() is stays
    if not stays:
        assert [path.name for path in cache.rglob("*")] in ([".lock"], [".lock", "layers"])


def test_an_image_that_an_attempt_uses_stays(tmp_path: Path, cache: Path, attempt: Path) -> None:
    image = an_image(tmp_path, cache, attempt)
    other = tmp_path / "attempt-2"
    other.mkdir()
    grow_old(image, 100 * DAY)

    sweep(cache, attempts=[other, attempt])
    assert files_of(image) == {"a": "layout"}
    sweep(cache, attempts=[other])
    assert not image.root.exists()


def test_an_image_that_was_cleared_away_is_unpacked_again(
    tmp_path: Path, cache: Path, attempt: Path
) -> None:
    image = an_image(tmp_path, cache, attempt)
    grow_old(image, 100 * DAY)
    sweep(cache)

    again = images_cache.acquire_image(str(tmp_path / "layout.tar"), cache=cache, attempt=attempt)

    assert again == image
    assert files_of(again) == {"a": "layout"}


def test_to_use_an_image_makes_it_young(tmp_path: Path, cache: Path, attempt: Path) -> None:
    image = an_image(tmp_path, cache, attempt)
    grow_old(image, 100 * DAY)

    images_cache.acquire_image(str(tmp_path / "layout.tar"), cache=cache, attempt=attempt)
    sweep(cache)

    assert image.root.exists()


def test_what_a_killed_hub_left_half_done_is_cleared_away(
    tmp_path: Path, cache: Path, attempt: Path
) -> None:
    image = an_image(tmp_path, cache, attempt)
    for name in ("one.partial", "one.gone", "two.gone"):
        (cache / name / "deep").mkdir(parents=True)

    sweep(cache)

    assert image.root.exists()
    assert [path.name for path in cache.iterdir() if path.suffix in {".partial", ".gone"}] == []


def test_an_image_from_before_there_were_notes_counts_as_used_now(
    tmp_path: Path, cache: Path, attempt: Path
) -> None:
    image = an_image(tmp_path, cache, attempt)
    assert image.folder is not None
    image.folder.with_name(f"{image.folder.name}.used").unlink()
    os.utime(image.folder, (0, 0))

    sweep(cache)
    assert image.root.exists()
    grow_old(image, 2 * DAY)
    sweep(cache)
    assert not image.root.exists()


def test_without_images_there_is_nothing_to_do(cache: Path) -> None:
    sweep(cache)
    assert not cache.exists()


def test_an_image_that_cannot_be_read_is_not_in_the_way(
    tmp_path: Path, cache: Path, attempt: Path
) -> None:
    image = an_image(tmp_path, cache, attempt)
    broken = a_layout(tmp_path / "broken", a_layer(entry("a", "two")))
    (broken / "index.json").write_text("{")
    with pytest.raises(CannotRun):
        images_cache.acquire_image(str(broken), cache=cache, attempt=attempt)
    grow_old(image, 2 * DAY)

    sweep(cache, image_map=naming(broken, tmp_path / "missing", tmp_path / "layout.tar"))

    assert image.root.exists()


@needs_bubblewrap
async def test_the_image_of_a_job_that_runs_stays(tmp_path: Path) -> None:
    layout = a_layout(tmp_path / "layout", a_layer(folder("usr"), *links_of_this_machine()))
    runner = sandbox_runner(tmp_path / "data", image_map=naming(layout), network=False)
    usr = BindMount(source=Path("/usr"), target="/usr", read_only=True)
    order = an_order(tmp_path / "data", *shell("echo ready; sleep 60"), binds=(usr,))
    run = Run(runner=runner, order=order, handle=await runner.launch(order))
    root = (order.folder / images_cache.LINK).readlink()
    await run.prints("ready")
    grow_old(Image(root=root, folder=root), 100 * DAY)

    await runner.tidy_up()
    assert root.exists()
    await runner.stop(run.handle, grace_seconds=0)
    await run.ended()
    await runner.tidy_up()
    assert root.exists()
    await runner.remove(run.handle)
    await runner.tidy_up()
    assert not root.exists()
