"""The docker runner without an engine: what it asks for, and what it makes of the answers."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hublet.jobs.records import Phase, Usage
from hublet.runtime.attempt_folder import note_log_start
from hublet.runtime.docker.containers import config_of, observation_of, parse_time, usage_of
from hublet.runtime.docker.log_follower import follow
from hublet.runtime.records import BindMount, LaunchOrder

START, END = "2026-11-15T12:00:00.123456789Z", "2026-11-15T12:00:01.5Z"
NEVER = "0001-01-01T00:00:00Z"


def an_order(**changes: Any) -> LaunchOrder:
    """An attempt; name only what the test is about."""
    order: dict[str, Any] = {
        "job_id": "a" * 24,
        "number": 2,
        "folder": Path("/data/attempt-2"),
        "log": Path("/data/log"),
        "image": "busybox",
        "argv": ("sh", "-c", "true"),
        "environment": {"KEY": "s3cret"},
        "cores": 0.5,
        "memory_bytes": 2**20,
        "timeout_seconds": 60,
        "grace_seconds": 1.5,
        "log_bytes": 2**20,
        "hostname": "job",
    }
    return LaunchOrder(**(order | changes))


def config(**changes: Any) -> dict[str, Any]:
    return config_of(
        an_order(**changes), image="busybox", hub="h", network=False, data_dir=Path("/data")
    )


def test_a_container_has_the_limits_and_nothing_beyond_them() -> None:
    host = config()["HostConfig"]

    assert (host["Memory"], host["MemorySwap"], host["NanoCpus"]) == (2**20, 2**20, 500_000_000)
    assert (host["CapDrop"], host["SecurityOpt"]) == (["ALL"], ["no-new-privileges"])
    assert (host["NetworkMode"], host["RestartPolicy"]) == ("none", {"Name": "no"})
    assert host["Mounts"] == []


def test_the_command_is_the_jobs_and_secrets_are_only_in_the_environment() -> None:
    created = config()

    assert (created["Entrypoint"], created["Cmd"]) == (["sh"], ["-c", "true"])
    assert created.pop("Env") == ["KEY=s3cret"]
    assert "s3cret" not in repr(created)


def test_without_a_command_the_image_decides() -> None:
    assert {"Entrypoint", "Cmd"}.isdisjoint(config(argv=()))


def test_arguments_alone_follow_what_the_image_begins_with() -> None:
    created = config(argv=("a", "b"), after_entrypoint=True)

    assert created["Cmd"] == ["a", "b"]
    assert "Entrypoint" not in created


def test_volumes_and_the_files_of_a_space_are_mounted() -> None:
    binds = (BindMount(source=Path("/x"), target="/data", read_only=True),)
    created = config(binds=binds, content=Path("/app-files"))

    assert created["WorkingDir"] == "/app"
    assert created["HostConfig"]["Mounts"] == [
        {"Type": "bind", "Source": "/x", "Target": "/data", "ReadOnly": True},
        {"Type": "bind", "Source": "/app-files", "Target": "/app", "ReadOnly": False},
    ]


@pytest.mark.parametrize(
    ("status", "is_drained", "phase"),
    [
        pytest.param("created", False, Phase.pending, id="it has not begun"),
        pytest.param("running", False, Phase.running, id="it runs"),
        pytest.param("exited", False, Phase.running, id="what it printed is not all written"),
        pytest.param("exited", True, Phase.exited, id="it is over"),
        pytest.param("dead", True, Phase.exited, id="it is over and could not be cleared away"),
    ],
)
def test_an_end_counts_when_the_log_is_whole(
    status: str, phase: Phase, *, is_drained: bool
) -> None:
    state = {"Status": status, "StartedAt": START, "FinishedAt": END, "ExitCode": 3}

    seen = observation_of(state, is_drained=is_drained, timed_out=False, stopped=False)

    assert seen.phase is phase
    assert seen.exit_code == (3 if phase is Phase.exited else None)


def test_an_attempt_never_ends_before_it_begins() -> None:
    state = {"Status": "exited", "StartedAt": END, "FinishedAt": START, "ExitCode": 0}

    seen = observation_of(
        state | {"OOMKilled": True}, is_drained=True, timed_out=True, stopped=True
    )

    assert seen.started_at == seen.ended_at == parse_time(END)
    assert (seen.out_of_memory, seen.timed_out, seen.stopped) == (True, True, True)


def test_times_are_read_to_the_microsecond() -> None:
    assert parse_time(START) == datetime(2026, 11, 15, 12, 0, 0, 123456, UTC)
    assert parse_time(END) == datetime(2026, 11, 15, 12, 0, 1, 500000, UTC)
    assert parse_time(NEVER) is None


def test_usage_is_what_was_used_between_two_looks() -> None:
    stats = {
        "cpu_stats": {
            "cpu_usage": {"total_usage": 300},
            "system_cpu_usage": 2000,
            "online_cpus": 2,
        },
        "precpu_stats": {"cpu_usage": {"total_usage": 100}, "system_cpu_usage": 1000},
        "memory_stats": {"usage": 7},
    }

    assert usage_of(stats) == Usage(cpu_millicores=400, memory_bytes=7)


async def output(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def write(folder: Path, *pieces: bytes) -> None:
    await follow(output(*pieces), folder=folder, log=folder / "log", limit=2**20, started="now")


def texts(folder: Path) -> list[str]:
    return [line.partition(" ")[2] for line in (folder / "log").read_text().splitlines()]


async def test_who_follows_again_writes_only_what_is_new(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("1 of an attempt before\n")
    note_log_start(tmp_path, tmp_path / "log")
    await write(tmp_path, b"one\ntw", b"o\n")
    note_log_start(tmp_path, tmp_path / "log")

    await write(tmp_path, b"one\ntwo\nthr", b"ee\nfour")
    await write(tmp_path, b"one\ntwo\nthree\nfour")

    marker = "===== Job started at now ====="
    assert texts(tmp_path) == ["of an attempt before", marker, "one", "two", "three", "four"]


async def test_long_lines_are_counted_as_the_pieces_that_were_written(tmp_path: Path) -> None:
    note_log_start(tmp_path, tmp_path / "log")
    long = b"x" * 150_000
    await write(tmp_path, long + b"\nend\n")

    await write(tmp_path, long[:70_000], long[70_000:] + b"\nend\nmore\n")

    assert [len(text) for text in texts(tmp_path)[1:]] == [65536, 65536, 18928, 3, 4]


async def test_a_worker_with_another_data_folder_goes_on_with_the_log(tmp_path: Path) -> None:
    """What the others have shipped is made a file of before; without it the engine has all lines."""
    labels = config(folder=Path("/data/jobs/attempt-2"), log=Path("/data/jobs/log"))["Labels"]
    assert (labels["hublet.folder"], labels["hublet.log"]) == ("jobs/attempt-2", "jobs/log")
    marker = "===== Job started at now ====="
    for name, known in (("empty", []), ("restored", [marker, "one"])):
        folder, log = tmp_path / name / labels["hublet.folder"], tmp_path / name / "log"
        if known:
            note_log_start(folder, log)
            log.write_text("".join(f"1000 {line}\n" for line in known))

        await follow(output(b"one\ntwo\n"), folder=folder, log=log, limit=2**20, started="now")

        assert texts(tmp_path / name) == [marker, "one", "two"]


async def test_a_log_that_was_made_anew_is_followed_anew(tmp_path: Path) -> None:
    async def replaced() -> AsyncIterator[bytes]:
        yield b"one\n"
        (tmp_path / "new").write_text("1000 shipped by another worker\n")
        (tmp_path / "new").rename(tmp_path / "log")
        yield b"two\n"

    with pytest.raises(OSError, match="made anew"):
        await follow(replaced(), folder=tmp_path, log=tmp_path / "log", limit=2**20, started="now")

    assert texts(tmp_path) == ["shipped by another worker"]


def test_devices_have_the_same_names_inside() -> None:
    assert config(devices=("/dev/nvidia0",))["HostConfig"]["Devices"] == [
        {
            "PathOnHost": "/dev/nvidia0",
            "PathInContainer": "/dev/nvidia0",
            "CgroupPermissions": "rwm",
        }
    ]
