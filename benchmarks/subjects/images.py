"""Images: how long their layers take to be unpacked, and what a job waits for that shares them."""

import asyncio
import gzip
import hashlib
import json
import random
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from statistics import median

from benchmarks.figures import Goal, Row, Spoiled
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop
from hublet.core.config.kinds import ImageSource
from hublet.runtime.images import oci, rootfs
from hublet.runtime.records import BindMount, LaunchOrder, Runner
from hublet.runtime.sandbox.runner import sandbox_runner

# As python:3.12-slim with some packages has them.
_FILES, _BYTES, _LAYERS = 7495, 293 * 10**6, (0.45, 0.3, 0.2, 0.05)
_JOBS, _PATIENCE_SECONDS = 40, 60.0
_UNPACK = Goal(aim=3, more_is_better=False, of="ours")
_START = Goal(floor=25, aim=20, more_is_better=False, of="ours")


def measure(bench: Workbench) -> Iterator[Row]:
    """An image of 293 MB in four layers of gzip: unpacked, and shared by jobs."""
    folder = bench.site("SQLite").folder
    manifest = _write_image(folder / "image", share=bench.share)
    yield from _unpacking(manifest, folder, rounds=bench.rounds)
    yield run_loop(_starts(folder, count=max(round(_JOBS * bench.share), 5)))


def _write_image(folder: Path, *, share: float) -> oci.ImageManifest:
    """Write layers of files that gzip makes a good half smaller."""
    folder.mkdir()
    chance = random.Random(1)
    count = max(round(_FILES * share), 20)
    layers = []
    for number, part in enumerate(_LAYERS):
        archive = BytesIO()
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as file:
            for each in range(round(count * part)):
                if each % 10 == 0:
                    above = tarfile.TarInfo(f"usr/lib/{number}/{each // 10}")
                    above.type, above.mode = tarfile.DIRTYPE, 0o755
                    file.addfile(above)
                size = round(chance.expovariate(_FILES / _BYTES))
                content = chance.randbytes(size // 3) + b"of jobs and images, " * (size // 30)
                member = tarfile.TarInfo(f"usr/lib/{number}/{each // 10}/{each}")
                member.size, member.mode = len(content), 0o644
                file.addfile(member, BytesIO(content))
        packed = gzip.compress(archive.getvalue(), 6, mtime=0)
        path = folder / f"{number}.tar.gz"
        path.write_bytes(packed)
        layers.append((path, f"sha256:{hashlib.sha256(packed).hexdigest()}"))
    config = json.dumps({"os": "linux", "architecture": oci.machine(), "config": {}}).encode()
    return oci.ImageManifest(digest=f"sha256:{'0' * 64}", layers=tuple(layers), config=config)


def _unpacking(manifest: oci.ImageManifest, folder: Path, *, rounds: int) -> Iterator[Row]:
    def by_hublet(into: Path) -> None:
        rootfs.unpack_manifest(manifest, cache=into)

    def by_tar(into: Path) -> None:
        for path, _ in manifest.layers:
            subprocess.run(["tar", "-xzf", path, "-C", into], check=True)

    ours, tars = list[float](), list[float]()
    for _ in range(rounds):
        ours.append(_time(by_hublet, folder / "unpacked"))
        tars.append(_time(by_tar, folder / "unpacked"))
    size = sum(path.stat().st_size for path, _ in manifest.layers)
    yield Row(
        subject="image, unpacked and verified",
        unit="s",
        ours=median(ours),
        other=median(tars),
        other_is="GNU tar, layer after layer, not verified",
        ratios=tuple(mine / theirs for mine, theirs in zip(ours, tars, strict=True)),
        goal=_UNPACK,
        note=f"{size / 10**6:.0f} MB in {len(manifest.layers)} layers",
    )


def _time(unpack: Callable[[Path], None], into: Path) -> float:
    into.mkdir()
    try:
        begun = time.perf_counter()
        unpack(into)
        return time.perf_counter() - begun
    finally:
        shutil.rmtree(into)


async def _starts(folder: Path, *, count: int) -> Row:
    """Launch jobs in turn on this machine's own programs and in an image of four layers."""
    image = _write_root(folder / "root-image")
    targets = {"host": "host", "image": str(image)}
    images = [ImageSource(pattern=name, target=target) for name, target in targets.items()]
    runner = sandbox_runner(folder / "hub", image_map=images, network=False)
    await runner.probe()
    seconds: dict[str, list[float]] = {"host": [], "image": []}
    for number in range(count + 2):
        for name, found in seconds.items():
            took = await _first_byte(runner, folder / "hub", name, number)
            # The first ones unpack the image and start what starts jobs.
            if number > 1:
                found.append(took * 1000)
    host, layered = median(seconds["host"]), median(seconds["image"])
    return Row(
        subject="job on shared layers, to its first byte, above one on host",
        unit="ms",
        ours=layered - host,
        goal=_START,
        note=f"p50 {layered:.1f} ms on layers, {host:.1f} ms on host",
    )


def _write_root(layout: Path) -> Path:
    """Write an OCI layout: a root that has this machine's /usr mounted, and three layers above."""
    blobs = layout / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def add(content: bytes) -> dict[str, object]:
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"digest": f"sha256:{digest}", "size": len(content)}

    layers = [_root_layer(number) for number in range(4)]
    config = {"os": "linux", "architecture": oci.machine(), "config": {}}
    manifest = {
        "config": add(json.dumps(config).encode()),
        "layers": [add(each) for each in layers],
    }
    index = {"manifests": [add(json.dumps(manifest).encode())]}
    (layout / "index.json").write_text(json.dumps(index))
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return layout


def _root_layer(number: int) -> bytes:
    archive = BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as file:
        for name in ("usr", "etc", f"srv/{number}"):
            member = tarfile.TarInfo(name)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            file.addfile(member)
        for name in ("bin", "lib", "lib64"):
            if number == 0 and (path := Path("/", name)).is_symlink():
                member = tarfile.TarInfo(name)
                member.type, member.linkname = tarfile.SYMTYPE, str(path.readlink())
                file.addfile(member)
    return gzip.compress(archive.getvalue())


async def _first_byte(runner: Runner, data_dir: Path, image: str, number: int) -> float:
    job_id = hashlib.sha256(f"{image} {number}".encode()).hexdigest()[:24]
    folder = data_dir / "jobs" / job_id[:2] / job_id
    usr = BindMount(source=Path("/usr"), target="/usr", read_only=True)
    order = LaunchOrder(
        job_id=job_id,
        number=1,
        folder=folder / "attempt-1",
        log=folder / "log",
        image=image,
        argv=("sh", "-c", "echo hello"),
        environment={},
        cores=1,
        memory_bytes=2**28,
        timeout_seconds=60,
        grace_seconds=1,
        log_bytes=2**20,
        binds=(usr,),
        hostname="job",
    )
    begun = time.perf_counter()
    handle = await runner.launch(order)
    while b" hello\n" not in (order.log.read_bytes() if order.log.exists() else b""):
        if time.perf_counter() - begun > _PATIENCE_SECONDS:
            raise Spoiled(f"A job on {image} printed nothing: {await runner.inspect(handle)}")
        await asyncio.sleep(0.0005)
    took = time.perf_counter() - begun
    await runner.remove(handle)
    return took
