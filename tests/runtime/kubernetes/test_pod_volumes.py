"""Volumes of a pod without a cluster: all of it or nothing comes in, and what was written comes back."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("lightkube", reason="hublet[kubernetes] is not installed")

from hublet.runtime.errors import CannotAttach
from hublet.runtime.kubernetes import volumes
from hublet.runtime.kubernetes.runner import KubernetesRunner
from hublet.runtime.kubernetes.volumes import PodVolume
from hublet.runtime.records import BindMount, LaunchOrder
from patience import SOON_SECONDS
from runtime.attempts import an_order
from runtime.kubernetes.local_pods import LocalCluster, a_cluster, a_runner
from runtime.unprivileged import not_root


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalCluster:
    return a_cluster(tmp_path / "pods", monkeypatch)


def an_attempt(data_dir: Path) -> LaunchOrder:
    """An attempt with a commit, and with a bucket that it may write to."""
    (data_dir / "commit").mkdir(parents=True)
    (data_dir / "commit" / "file").write_text("commit")
    (data_dir / "bucket" / "files" / "deep").mkdir(parents=True)
    (data_dir / "bucket" / "files" / "deep" / "file").write_text("given")
    (data_dir / "bucket" / "handed.json").write_text("what was given")
    binds = (
        BindMount(source=data_dir / "commit", target="/data", read_only=True),
        BindMount(
            source=data_dir / "bucket" / "files",
            target="/out",
            read_only=False,
            snapshot=data_dir / "bucket" / "handed.json",
        ),
    )
    return an_order(data_dir, "true", binds=binds)


async def begun(runner: KubernetesRunner, handle: str) -> None:
    async with asyncio.timeout(SOON_SECONDS):
        while (await runner.inspect(handle)).started_at is None:
            await asyncio.sleep(0.01)


def volume_of(runner: KubernetesRunner, cluster: LocalCluster, handle: str) -> PodVolume:
    annotation = cluster.pods[handle].manifest["metadata"]["annotations"]["hublet/volumes"]
    return volumes.volumes_of(annotation, runner.settings.data_dir)[1]


async def test_a_snapshot_goes_with_the_files_and_comes_back_with_them_anywhere(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    one, two = (a_runner(cluster, tmp_path / name) for name in ("one", "two"))
    handle = await one.launch(an_attempt(tmp_path / "one"))
    await begun(one, handle)
    root = cluster.pods[handle].root
    assert (root / "0" / "file").read_text() == "commit"
    (root / "1" / "deep" / "file").write_text("changed")
    # Prepared by the second worker, which was not the one to fill the pod.
    (tmp_path / "two" / "bucket").mkdir(parents=True)
    (tmp_path / "two" / "bucket" / "handed.json").write_text("other files")

    await volumes.read_back(cluster, handle, volume_of(two, cluster, handle))  # type: ignore[arg-type]

    there = tmp_path / "two" / "bucket"
    assert (there / "files" / "deep" / "file").read_text() == "changed"
    assert (there / "handed.json").read_text() == "what was given"
    assert sorted(path.name for path in there.iterdir()) == ["files", "handed.json"]
    await one.close()


async def test_a_job_does_not_begin_with_a_part_of_its_volumes(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    runner = a_runner(cluster, tmp_path)
    handle = await runner.launch(an_attempt(tmp_path))
    there = volume_of(runner, cluster, handle)
    # The archive ends between two members, which tar takes for a whole one.
    vanished = replace(there, source=tmp_path / "gone")

    with pytest.raises(FileNotFoundError):
        await volumes.fill(cluster, handle, [there, vanished])  # type: ignore[arg-type]

    pod = cluster.pods[handle]
    assert pod.is_filling
    assert list(pod.root.iterdir()) == []


async def test_volumes_that_are_elsewhere_are_asked_for(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    one, two = (a_runner(cluster, tmp_path / name) for name in ("one", "two"))
    handle = await one.launch(an_attempt(tmp_path / "one"))

    assert (await two.inspect(handle)).lacks_volumes
    assert not (await one.inspect(handle)).lacks_volumes

    await begun(one, handle)
    await one.close()


async def test_what_a_job_has_closed_keeps_nothing_else_from_coming_back(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    runner = a_runner(cluster, tmp_path)
    handle = await runner.launch(an_attempt(tmp_path))
    await begun(runner, handle)
    root = cluster.pods[handle].root
    (root / "1" / "new").write_text("new")
    with not_root(tmp_path):
        (root / "1" / "new").chmod(0)
        (root / "1" / "deep").chmod(0)
        await volumes.read_back(cluster, handle, volume_of(runner, cluster, handle))  # type: ignore[arg-type]

    files = tmp_path / "bucket" / "files"
    assert (files / "new").read_text() == "new"
    assert (files / "deep" / "file").read_text() == "given"
    await runner.close()


async def test_a_broken_connection_replaces_nothing(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = a_runner(cluster, tmp_path)
    handle = await runner.launch(an_attempt(tmp_path))
    await begun(runner, handle)
    (cluster.pods[handle].root / "1" / "new").write_text("x" * 100_000)
    monkeypatch.setattr(volumes, "is_end", lambda _: True)

    with pytest.raises((CannotAttach, KeyError, ValueError)):
        await volumes.read_back(cluster, handle, volume_of(runner, cluster, handle))  # type: ignore[arg-type]

    assert (tmp_path / "bucket" / "files" / "deep" / "file").read_text() == "given"
    assert not (tmp_path / "bucket" / "files" / "new").exists()
    await runner.close()
