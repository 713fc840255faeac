"""Volumes of a pod: the hub writes them into its init container, and reads them when it ended.

No token is needed in the pod and no way from it to the hub: what a job may read and write is
decided where it is for every runner (`runtime.volumes`), and archives go through the cluster. The
snapshot of a written volume goes with it, so that a worker which has not filled it can compare.
"""

import asyncio
import json
import os
import tarfile
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from hublet.core.dataclasses import dataclass
from hublet.core.folders import atomic_dir, remove_tree
from hublet.core.ids import new_object_id
from hublet.runtime.errors import CannotAttach
from hublet.runtime.kubernetes.cluster import ClusterConnection
from hublet.runtime.kubernetes.manifests import (
    FILL_CONTAINER,
    READY,
    VOLUMES_ROOT,
    WRITE_BACK_CONTAINER,
)
from hublet.runtime.kubernetes.pod_exec import is_end, is_output, start_exec

_CHUNK = 1 << 18
# Comes last: tar does not notice that an archive was cut between two members.
_END = "end"
# All of it or nothing: an earlier try may have left a part, another worker may be at it, and a job
# whose volumes are full may have begun.
_FILL = (
    f"cd {VOLUMES_ROOT} && fresh=.fill-$0 && mkdir $fresh || exit 1; "
    f"tar -xf - -C $fresh && rm $fresh/{_END} || {{ rm -rf $fresh; exit 1; }}; "
    f"[ -e {READY} ] && rm -rf $fresh && exit 0; rm -rf ./* && mv $fresh/* . && : > {READY}"
)
_SNAPSHOT = "{}.json"
# What the job has closed is opened: tar would fail. A pod of an older version has no snapshot.
_READ = (
    f'cd {VOLUMES_ROOT} && chmod -R u+rwX "$0"; [ -e "$0".json ] && set -- "$0".json; '
    'tar -cf - "$@" "$0"'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodVolume:
    """A folder of the hub, and its name in the pod's volume."""

    source: Path
    name: str
    # Whether what the job has changed comes back.
    is_written: bool
    # Where the hub has the snapshot of one that is written.
    snapshot: Path | None = None


def volumes_of(annotation: str, data_dir: Path) -> list[PodVolume]:
    """Return the volumes that an annotation of a pod names."""
    told: list[dict[str, Any]] = json.loads(annotation)
    return [
        PodVolume(
            source=data_dir / each["source"],
            name=each["name"],
            is_written=each["written"],
            snapshot=data_dir / each["snapshot"] if each.get("snapshot") else None,
        )
        for each in told
    ]


def are_here(volumes: list[PodVolume]) -> bool:
    """Tell whether this machine has all that a pod is to be filled with. Blocks."""
    return all(each.source.exists() for each in volumes)


def forget(volume: PodVolume) -> None:
    """Let a volume that cannot be read back count as lost, not as unchanged. Blocks."""
    if volume.snapshot is not None:
        volume.snapshot.unlink(missing_ok=True)


async def fill(cluster: ClusterConnection, pod: str, volumes: list[PodVolume]) -> None:
    """Write the volumes into the pod, whose job begins when all of them are there."""
    argv = ["/bin/sh", "-c", _FILL, new_object_id()]
    process = await start_exec(cluster, pod, argv, container=FILL_CONTAINER)
    said = bytearray()

    async def read() -> int:
        async for frame in process.frames():
            if is_end(frame):
                return frame.exit_code()
            said.extend(frame.data)
        raise CannotAttach("The cluster ended the connection to the pod.")

    reading = asyncio.create_task(read())
    try:
        async for piece in _archive(volumes):
            await process.write(piece)
        await process.end_input()
        if code := await reading:
            raise CannotAttach(f"tar ended with {code}: {said.decode(errors='replace')[:500]}")
    finally:
        reading.cancel()
        await process.close()


async def _archive(volumes: list[PodVolume]) -> AsyncIterator[bytes]:
    """Yield a tar archive of the volumes; a thread writes it into a pipe."""
    beginning, end = os.pipe()
    writing = asyncio.get_running_loop().run_in_executor(None, _write_archive, end, volumes)
    try:
        while piece := await asyncio.to_thread(os.read, beginning, _CHUNK):
            yield piece
    finally:
        # Ends the thread, too, if nobody reads on.
        os.close(beginning)
        await writing


def _write_archive(pipe: int, volumes: list[PodVolume]) -> None:
    with (
        suppress(BrokenPipeError),
        os.fdopen(pipe, "wb") as file,
        tarfile.open(fileobj=file, mode="w|", bufsize=_CHUNK) as tar,
    ):
        for volume in volumes:
            tar.add(volume.source, arcname=volume.name)
            if volume.snapshot is not None:
                tar.add(volume.snapshot, arcname=_SNAPSHOT.format(volume.name))
        tar.addfile(tarfile.TarInfo(_END))


async def read_back(cluster: ClusterConnection, pod: str, volume: PodVolume) -> None:
    """Replace the folder of a written volume by what the job has left, and its snapshot by the pod's.

    That is the one of the worker which filled the pod: another may have prepared other files.
    """
    process = await start_exec(
        cluster,
        pod,
        ["/bin/sh", "-c", _READ, volume.name],
        container=WRITE_BACK_CONTAINER,
        has_input=False,
    )
    fresh = volume.source.with_name(f"{volume.source.name}.new")
    beginning, end = os.pipe()
    extracting = asyncio.get_running_loop().run_in_executor(None, _extract, beginning, fresh)
    code: int | None = None
    try:
        async for frame in process.frames():
            if is_end(frame):
                code = frame.exit_code()
                break
            if is_output(frame):
                await asyncio.to_thread(_write_all, end, frame.data)
    except BrokenPipeError:
        # The other thread says why.
        pass
    finally:
        os.close(end)
        await process.close()
        await asyncio.wait([extracting])
    try:
        await extracting
    except tarfile.TarError as error:
        raise CannotAttach(f"The volume {volume.name} could not be read: {error}") from error
    if code != 0:
        raise CannotAttach(f"The volume {volume.name} could not be read: tar ended with {code}.")
    await asyncio.to_thread(_replace, volume, fresh)


def _write_all(pipe: int, data: bytes) -> None:
    while data:
        data = data[os.write(pipe, data) :]


def _extract(pipe: int, fresh: Path) -> None:
    """Extract an archive into a new folder. Blocks."""
    with os.fdopen(pipe, "rb") as file:
        remove_tree(fresh)
        with atomic_dir(fresh) as target:
            with tarfile.open(fileobj=file, mode="r|", bufsize=_CHUNK) as tar:
                # The job wrote the names: what would leave the folder is left out.
                for member in tar:
                    with suppress(tarfile.FilterError):
                        tar.extract(member, target, filter="data")
            # What follows the end of an archive.
            while file.read(_CHUNK):
                pass


def _replace(volume: PodVolume, fresh: Path) -> None:
    """Let what was extracted take the place of a volume. Blocks."""
    snapshot = fresh / _SNAPSHOT.format(volume.name)
    if volume.snapshot is not None and snapshot.exists():
        snapshot.replace(volume.snapshot)
    remove_tree(volume.source)
    (fresh / volume.name).rename(volume.source)
    remove_tree(fresh)
