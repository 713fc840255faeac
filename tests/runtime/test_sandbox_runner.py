"""The sandbox runner keeps the contract, and keeps jobs away from everything else."""

import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from hublet.core.config import Settings
from hublet.core.config.kinds import ImageSource
from hublet.runtime.attempt_folder import read_status
from hublet.runtime.errors import CannotRun
from hublet.runtime.records import BindMount, Runner
from hublet.runtime.sandbox.runner import sandbox_runner
from hublet.runtime.shim.system import read
from hublet.runtime.supervisor.runner_selection import choose_runner
from runtime.attempts import HOST, launch, outcome
from runtime.runner_contract import RunnerContract, shell

pytestmark = pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="bubblewrap is not installed."
)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def runner(data_dir: Path) -> Runner:
    return sandbox_runner(data_dir, image_map=HOST, network=False)


class TestSandboxRunner(RunnerContract):
    """See runner_contract.py."""


async def printed(runner: Runner, data_dir: Path, script: str, **changes: object) -> list[str]:
    seen, lines = await outcome(runner, data_dir, *shell(script), **changes)
    assert seen.exit_code == 0, (seen, lines)
    return lines


@pytest.fixture
def device() -> Iterator[str]:
    """A device of which nobody else has heard; what is read from it are zeros."""
    name = f"/dev/hublet-{os.getpid()}"
    try:
        os.mknod(name, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("Only root makes devices.")
    Path(name).chmod(0o666)
    yield name
    Path(name).unlink()


async def test_a_job_has_the_devices_of_its_flavor_and_no_others(
    runner: Runner, data_dir: Path, device: str
) -> None:
    script = f"ls {device}; head -c 3 {device} | od -An -tx1"
    shown = await printed(runner, data_dir, script, devices=(device,))
    assert shown == [device, " 00 00 00"]
    assert await printed(runner, data_dir, f"ls {device} 2>/dev/null || echo none") == ["none"]


async def test_a_device_that_is_not_there_is_told(runner: Runner, data_dir: Path) -> None:
    with pytest.raises(CannotRun, match="This machine has no /dev/nowhere, which the flavor"):
        await launch(runner, data_dir, "true", devices=("/dev/nowhere",))


@pytest.fixture
def settings_file() -> Iterator[Path]:
    """A link to a file that anybody may read, in a folder that jobs see."""
    if not os.access("/srv", os.W_OK):
        pytest.skip("/srv belongs to somebody else.")
    with tempfile.TemporaryDirectory(dir="/srv") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "hublet.toml").write_text("[database]")
        (folder / "link.toml").symlink_to(folder / "hublet.toml")
        yield folder / "link.toml"


async def test_the_settings_are_not_shown_with_the_machine(
    data_dir: Path, settings_file: Path
) -> None:
    found = Settings(file=settings_file)
    settings = replace(
        found,
        database=replace(found.database, data_dir=data_dir),
        jobs=replace(found.jobs, runner="sandbox", images=HOST),
    )
    script = f"ls {settings_file.parent}"
    for file, shown in [(None, ["hublet.toml", "link.toml"]), (settings_file, [])]:
        choice = await choose_runner(replace(settings, file=file))
        assert choice.runner is not None
        assert await printed(choice.runner, data_dir, script) == shown


async def test_the_job_has_no_rights_and_can_gain_none(runner: Runner, data_dir: Path) -> None:
    script = "id -u; grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status"
    lines = await printed(runner, data_dir, script)
    assert lines[0] == "1000"
    values = {line.split()[0]: line.split()[1] for line in lines[1:]}
    none = "0" * 16
    assert values == {
        "CapInh:": none,
        "CapPrm:": none,
        "CapEff:": none,
        "CapBnd:": none,
        "CapAmb:": none,
        "NoNewPrivs:": "1",
        "Seccomp:": "2",
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root has mounts of its own for a job.")
async def test_bubblewrap_finds_nothing_of_sys_among_the_mounts(
    runner: Runner, data_dir: Path
) -> None:
    run = await launch(runner, data_dir, *shell("echo ready; exec sleep 60"))
    await run.prints("ready")
    status = read_status(Path(run.handle))
    assert status is not None
    lines = read(f"/proc/{status['main']}/mountinfo").splitlines()
    await runner.stop(run.handle, grace_seconds=0)
    places = {line.split()[4] for line in lines}
    assert b"/proc" in places
    assert [place for place in places if place.startswith(b"/sys")] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root gives a job another user.")
async def test_a_hub_that_is_root_gives_each_job_another_user(
    runner: Runner, data_dir: Path
) -> None:
    owners = []
    for _ in range(2):
        run = await launch(runner, data_dir, *shell("touch $HOME/mine /tmp/too"))
        assert (await run.ended()).exit_code == 0
        files = [run.order.folder / "home" / "mine", run.order.folder / "tmp" / "too"]
        owners.append({file.stat().st_uid for file in files})
    assert all(len(each) == 1 and min(each) >= 0x60000000 for each in owners)
    assert owners[0] != owners[1]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("touch /usr/new", id="change what it only reads"),
        pytest.param("touch /etc/passwd", id="change a file of the machine"),
        pytest.param("cat /etc/shadow", id="read what is closed to others"),
        pytest.param("unshare --user true", id="make a user namespace"),
        pytest.param("unshare --mount true", id="make another namespace"),
        pytest.param("mount -t tmpfs none /tmp", id="mount"),
        pytest.param("echo x > /proc/sys/kernel/core_pattern", id="set up the kernel"),
        pytest.param("mknod /tmp/null c 1 3", id="make a device"),
        pytest.param("chroot / true", id="change its root"),
        pytest.param("cat < /dev/tcp/127.0.0.1/22", id="reach the network"),
    ],
)
async def test_a_job_cannot(runner: Runner, data_dir: Path, script: str) -> None:
    seen, _ = await outcome(runner, data_dir, "bash", "-c", script)
    assert seen.exit_code not in {0, None}


_TRY_SOCKETS = """
import errno, socket
STREAM, DATAGRAM = socket.SOCK_STREAM, socket.SOCK_DGRAM
for name, kind in [
    ("UNIX", STREAM), ("INET", STREAM), ("INET6", DATAGRAM), ("NETLINK", DATAGRAM),
    ("PACKET", DATAGRAM), ("VSOCK", STREAM), ("ALG", socket.SOCK_SEQPACKET), ("BLUETOOTH", STREAM),
]:
    try:
        socket.socket(getattr(socket, "AF_" + name), kind)
        print(name, "works")
    except OSError as error:
        print(name, errno.errorcode[error.errno])
"""


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="The machine has no Python.")
async def test_a_job_has_sockets_of_four_families_only(runner: Runner, data_dir: Path) -> None:
    seen, lines = await outcome(runner, data_dir, "/usr/bin/python3", "-c", _TRY_SOCKETS)
    assert seen.exit_code == 0, (seen, lines)
    assert lines == [
        *(f"{family} works" for family in ("UNIX", "INET", "INET6", "NETLINK")),
        *(f"{family} EAFNOSUPPORT" for family in ("PACKET", "VSOCK", "ALG", "BLUETOOTH")),
    ]


async def test_it_sees_its_own_processes_only(runner: Runner, data_dir: Path) -> None:
    lines = await printed(runner, data_dir, "ls -d /proc/[0-9]*; hostname", hostname="box")
    assert len(lines) <= 5
    assert lines[-1] == "box"


async def test_it_gets_no_file_of_the_shim(runner: Runner, data_dir: Path) -> None:
    assert await printed(runner, data_dir, "cd /proc/self/fd; echo *") == ["0 1 2 3"]


async def test_it_sees_nothing_of_the_hub_and_of_people(tmp_path: Path) -> None:
    data_dir = Path(__file__).parents[2] / f".sandbox-test-{os.getpid()}"
    data_dir.mkdir()
    (data_dir / "hub.db").write_text("secret")
    runner = sandbox_runner(data_dir, image_map=HOST, network=False)
    try:
        script = f"ls -A {data_dir}; ls -A /root; ls -A /home; ls -A /tmp; ls {data_dir.parent}"
        seen, lines = await outcome(runner, data_dir, *shell(script + "; true"))
        assert seen.exit_code == 0
        assert not any("hub.db" in line for line in lines)
        assert "job" in lines
        assert not any("pytest" in line for line in lines)
    finally:
        shutil.rmtree(data_dir)


async def test_its_environment_is_not_obeyed_outside(runner: Runner, data_dir: Path) -> None:
    # A library of the job's that bubblewrap loaded would run outside of the sandbox. This asks
    # the loader to tell what it loads instead: that must be a shell, and not bubblewrap.
    _, lines = await outcome(
        runner, data_dir, *shell("true"), environment={"LD_TRACE_LOADED_OBJECTS": "1"}
    )
    assert any("libc.so" in line for line in lines)
    assert not any("libcap" in line for line in lines)


async def test_volumes_are_where_they_were_asked_for(runner: Runner, data_dir: Path) -> None:
    model, bucket = data_dir / "model", data_dir / "bucket"
    for folder in (model, bucket):
        folder.mkdir()
        (folder / "old").write_text(f"of the {folder.name}\n")
    binds = (
        BindMount(source=model, target="/models/deep/one", read_only=True),
        BindMount(source=bucket, target="/mnt/bucket", read_only=False),
    )
    script = (
        "cat /models/deep/one/old /mnt/bucket/old; touch /models/deep/one/new 2>/dev/null || "
        "echo closed; echo changed > /mnt/bucket/old; echo new > /mnt/bucket/new; ls -d /mnt/*"
    )
    lines = await printed(runner, data_dir, script, binds=binds)
    assert lines[:3] == ["of the model", "of the bucket", "closed"]
    assert "/mnt/bucket" in lines
    assert sorted(path.name for path in model.iterdir()) == ["old"]
    assert {path.name: path.read_text() for path in bucket.iterdir()} == {
        "old": "changed\n",
        "new": "new\n",
    }


async def test_a_file_that_is_also_somebody_elses_stays_theirs(
    runner: Runner, data_dir: Path
) -> None:
    bucket, blob = data_dir / "bucket", data_dir / "blob"
    bucket.mkdir()
    blob.write_text("content")
    blob.chmod(0o644)
    (bucket / "linked").hardlink_to(blob)
    owner = blob.stat().st_uid
    bind = BindMount(source=bucket, target="/bucket", read_only=False)
    await outcome(runner, data_dir, *shell("cat /bucket/linked"), binds=(bind,))
    assert (blob.stat().st_uid, blob.read_text()) == (owner, "content")


async def test_a_space_begins_in_its_content(runner: Runner, data_dir: Path) -> None:
    content = data_dir / "content"
    content.mkdir(mode=0o755)
    (content / "app.sh").write_text("pwd; touch new 2>/dev/null || echo closed\n")
    _, lines = await outcome(runner, data_dir, "sh", "app.sh", content=content)
    assert lines == ["/app", "closed"]


def an_image(path: Path) -> None:
    """A folder with just enough of this machine to run a shell."""
    path.mkdir(mode=0o755)
    for name in ("bin", "lib", "lib64", "usr"):
        source = Path("/", name)
        if source.is_symlink():
            (path / name).symlink_to(source.readlink())
    (path / "etc").mkdir()
    (path / "etc" / "image").write_text("mine\n")


async def test_an_image_is_a_folder(data_dir: Path) -> None:
    image = data_dir / "image"
    an_image(image)
    (image / "usr").mkdir()
    runner = sandbox_runner(
        data_dir, image_map=[ImageSource(pattern="mine:*", target=str(image))], network=False
    )
    usr = BindMount(source=Path("/usr"), target="/usr", read_only=True)
    lines = await printed(runner, data_dir, "cat /etc/image; ls /etc", image="mine:1", binds=(usr,))
    assert lines == ["mine", "image"]


async def test_an_image_is_an_archive_that_is_unpacked_once(data_dir: Path) -> None:
    image = data_dir / "image"
    an_image(image)
    archive = data_dir / "image.tar"
    with tarfile.open(archive, "w") as file:
        file.add(image, ".")
        device = tarfile.TarInfo("dev/null")
        device.type = tarfile.CHRTYPE
        file.addfile(device)
        tool = tarfile.TarInfo("etc/tool")
        tool.mode, tool.size = 0o4755, 2
        file.addfile(tool, BytesIO(b"#!"))
    runner = sandbox_runner(
        data_dir, image_map=[ImageSource(pattern="*", target=str(archive))], network=False
    )
    usr = BindMount(source=Path("/usr"), target="/usr", read_only=True)
    for _ in range(2):
        lines = await printed(runner, data_dir, "stat -c '%a %n' /etc/*", binds=(usr,))
        assert lines == ["644 /etc/image", "755 /etc/tool"]
    unpacked = [path for path in (data_dir / "jobs" / "images").iterdir() if path.is_dir()]
    assert len(unpacked) == 1


async def test_the_machines_own_programs_are_announced_once(data_dir: Path) -> None:
    runner = sandbox_runner(data_dir, image_map=HOST, network=False, announces_host=True)
    first = await launch(runner, data_dir, "echo", "hello")
    await first.ended()
    # A retry writes into the same log.
    again = await launch(runner, data_dir, "echo", "again", job_id=first.order.job_id, number=2)
    await again.ended()

    told = "===== No image ubuntu here: the job runs with the programs of the hub's machine ====="
    assert first.lines() == [told, "hello", "again"]


async def test_an_unknown_image_is_named(data_dir: Path) -> None:
    runner = sandbox_runner(data_dir, image_map=[], network=False)
    with pytest.raises(CannotRun, match=r"^This hub has no image ubuntu\.$"):
        await launch(runner, data_dir, "true")
    assert await runner.handles() == []


async def test_a_mount_that_cannot_be_is_told(runner: Runner, data_dir: Path) -> None:
    bind = BindMount(source=data_dir / "missing", target="/data", read_only=True)
    seen, _ = await outcome(runner, data_dir, "true", binds=(bind,))
    assert seen.exit_code not in {0, None}
    assert seen.reason is not None


async def test_without_that_there_is_a_network_of_its_own(runner: Runner, data_dir: Path) -> None:
    lines = await printed(runner, data_dir, "cut -d: -f1 /proc/net/dev | tail -n +3")
    assert [line.strip() for line in lines] == ["lo"]


async def test_the_network_of_the_machine_is_shared_where_that_is_set(data_dir: Path) -> None:
    runner = sandbox_runner(data_dir, image_map=HOST, network=True)
    lines = await printed(runner, data_dir, "readlink /proc/self/ns/net")
    assert lines == [os.readlink("/proc/self/ns/net")]  # noqa: PTH115 - no file, and no wait.
