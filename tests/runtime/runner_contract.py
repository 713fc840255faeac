"""What every runner must do, whatever it runs things with: one suite, in a class for each."""

import asyncio
import hashlib
import re
from pathlib import Path

import pytest

from hublet.core import clock
from hublet.jobs.records import Phase
from hublet.runtime.records import Runner
from patience import SOON_SECONDS
from runtime.attempts import MIB, an_order, launch, lines_of, outcome


def shell(script: str) -> tuple[str, ...]:
    return ("sh", "-c", script)


class RunnerContract:
    """Inherit, and have fixtures `runner` and `data_dir`."""

    async def test_it_says_that_it_can_be_used(self, runner: Runner) -> None:
        ability = await runner.probe()
        assert ability.usable, ability.sentence

    @pytest.mark.parametrize("code", [0, 1, 3, 127, 255])
    async def test_the_exit_code_is_told(self, runner: Runner, data_dir: Path, code: int) -> None:
        seen, _ = await outcome(runner, data_dir, *shell(f"exit {code}"))
        assert (seen.phase, seen.exit_code, seen.signal) == (Phase.exited, code, None)
        said = (seen.out_of_memory, seen.timed_out, seen.stopped, seen.reason)
        assert said == (False, False, False, None)

    @pytest.mark.parametrize("number", [6, 9, 15])
    async def test_a_signal_is_told(self, runner: Runner, data_dir: Path, number: int) -> None:
        seen, _ = await outcome(runner, data_dir, *shell(f"kill -{number} $$"))
        assert (seen.exit_code, seen.signal) == (128 + number, number)

    async def test_the_times_are_those_of_the_hub(self, runner: Runner, data_dir: Path) -> None:
        before = clock.now()
        seen, _ = await outcome(runner, data_dir, *shell("sleep 0.1"))
        assert seen.started_at is not None
        assert seen.ended_at is not None
        assert before <= seen.started_at < seen.ended_at <= clock.now()

    async def test_a_program_that_is_not_there_is_named(
        self, runner: Runner, data_dir: Path
    ) -> None:
        seen, _ = await outcome(runner, data_dir, "nonsense", "--flag")
        assert (seen.phase, seen.exit_code) == (Phase.exited, 127)
        assert seen.reason == "nonsense could not be started: No such file or directory"

    async def test_both_kinds_of_output_come_in_order(self, runner: Runner, data_dir: Path) -> None:
        script = "for i in 1 2 3; do echo out $i; echo err $i >&2; done"
        _, lines = await outcome(runner, data_dir, *shell(script))
        assert lines == ["out 1", "err 1", "out 2", "err 2", "out 3", "err 3"]

    async def test_each_line_has_its_time_and_the_first_tells_of_the_start(
        self, runner: Runner, data_dir: Path
    ) -> None:
        before = clock.micros()
        run = await launch(runner, data_dir, *shell("echo a; sleep 0.2; echo b"))
        await run.ended()
        lines = run.order.log.read_text().splitlines()
        assert re.fullmatch(
            r"\d{16} ===== Job started at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z =====", lines[0]
        )
        stamps = [int(line.partition(" ")[0]) for line in lines]
        assert before <= stamps[0] <= stamps[1]
        assert stamps[1] + 150_000 <= stamps[2] <= clock.micros()

    async def test_nothing_of_much_output_is_lost(self, runner: Runner, data_dir: Path) -> None:
        count = 50_000
        run = await launch(runner, data_dir, *shell(f"seq 1 {count}"))
        await run.ended()
        expected = "\n".join(map(str, range(1, count + 1)))
        assert _hash("\n".join(run.lines())) == _hash(expected)

    async def test_bytes_that_are_no_text_are_replaced(
        self, runner: Runner, data_dir: Path
    ) -> None:
        _, lines = await outcome(
            runner, data_dir, *shell(r"printf 'a\377b\nd\303\251j\303\240\r\n\000\n\nlast'")
        )
        assert lines == ["a\ufffdb", "déjà", "\0", "", "last"]

    async def test_endless_output_is_cut_and_the_job_goes_on(
        self, runner: Runner, data_dir: Path
    ) -> None:
        seen, lines = await outcome(
            runner, data_dir, *shell("seq 1 100000; exit 4"), log_bytes=10_000
        )
        assert seen.exit_code == 4
        notice = "===== The log is full (10000 bytes): what comes later is not kept ====="
        assert lines[-1] == notice
        assert lines[:-1] == [str(number) for number in range(1, len(lines))]
        assert len(lines) > 100

    async def test_its_input_is_empty(self, runner: Runner, data_dir: Path) -> None:
        seen, lines = await outcome(runner, data_dir, *shell("cat; echo done"))
        assert (seen.exit_code, lines) == (0, ["done"])

    async def test_it_gets_its_environment_and_not_the_hubs(
        self, runner: Runner, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OF_THE_HUB", "1")
        value = "a b=c\nd 'e' \"f\" $g é"
        _, lines = await outcome(
            runner, data_dir, *shell("env"), environment={"NAME": value, "EMPTY": ""}
        )
        assert "\n".join(lines).count(f"NAME={value}") == 1
        assert "EMPTY=" in lines
        assert not any("OF_THE_HUB" in line for line in lines)

    async def test_no_command_line_shows_the_environment(
        self, runner: Runner, data_dir: Path
    ) -> None:
        secret = "s3cret-0f4c1d"
        run = await launch(
            runner,
            data_dir,
            *shell("echo ready; cat /proc/[0-9]*/cmdline | tr '\\0' ' '; sleep 1"),
            environment={"SECRET": secret},
        )
        await run.prints("ready")
        outside = command_lines()
        files = [path for path in run.order.folder.rglob("*") if path.is_file()]
        await run.ended()
        assert not any(secret.encode() in line for line in outside)
        assert not any(secret in line for line in run.lines())
        assert not any(secret.encode() in _read(path) for path in files)

    async def test_what_is_too_slow_is_asked_to_end_and_killed_after_the_grace(
        self, runner: Runner, data_dir: Path
    ) -> None:
        gentle = "trap 'echo bye; exit 7' TERM; echo ready; sleep 60 & wait"
        stubborn = "trap '' TERM; while true; do sleep 1; done"
        # Until then both must be ready, also when the machine stops them for a while.
        limits = {"timeout_seconds": 5, "grace_seconds": 0.5}
        (asked, lines), (killed, _) = await asyncio.gather(
            outcome(runner, data_dir, *shell(gentle), timeout_seconds=5),
            outcome(runner, data_dir, *shell(stubborn), **limits),
        )
        assert (asked.exit_code, asked.timed_out, asked.stopped) == (7, True, False)
        assert lines == ["ready", "bye"]
        assert (killed.signal, killed.timed_out) == (9, True)
        assert killed.started_at is not None
        assert killed.ended_at is not None
        assert (killed.ended_at - killed.started_at).total_seconds() >= 5.4

    async def test_it_stops_when_asked(self, runner: Runner, data_dir: Path) -> None:
        run = await launch(runner, data_dir, *shell("echo ready; exec sleep 60"))
        await run.prints("ready")
        await runner.stop(run.handle, grace_seconds=5)
        seen = await run.ended()
        assert (seen.stopped, seen.timed_out, seen.signal) == (True, False, 15)

    async def test_it_is_killed_when_it_does_not_listen(
        self, runner: Runner, data_dir: Path
    ) -> None:
        run = await launch(runner, data_dir, *shell("trap '' TERM; echo ready; sleep 60; sleep 60"))
        await run.prints("ready")
        await runner.stop(run.handle, grace_seconds=60)
        await runner.stop(run.handle, grace_seconds=0.3)
        seen = await run.ended()
        assert (seen.stopped, seen.signal) == (True, 9)

    async def test_one_that_is_stopped_before_it_began_never_begins(
        self, runner: Runner, data_dir: Path
    ) -> None:
        order = an_order(data_dir, *shell("echo begun"))
        await runner.stop(str(order.folder), grace_seconds=1)
        handle = await runner.launch(order)
        seen = await runner.inspect(handle)
        assert (seen.phase, seen.stopped, seen.started_at) == (Phase.exited, True, None)
        assert not order.log.exists()

    async def test_stopping_what_ended_changes_nothing(
        self, runner: Runner, data_dir: Path
    ) -> None:
        run = await launch(runner, data_dir, *shell("exit 5"))
        before = await run.ended()
        await runner.stop(run.handle, grace_seconds=1)
        assert await run.seen() == before

    async def test_the_same_attempt_is_not_begun_twice(
        self, runner: Runner, data_dir: Path
    ) -> None:
        order = an_order(data_dir, *shell("echo once; sleep 0.3"))
        first = await asyncio.gather(*(runner.launch(order) for _ in range(4)))
        run = await launch(runner, data_dir, *shell("true"))
        await run.ended()
        while (await runner.inspect(first[0])).phase is not Phase.exited:
            await asyncio.sleep(0.01)
        assert {*first, await runner.launch(order)} == {first[0]}
        assert lines_of(order.log) == ["once"]

    async def test_a_second_attempt_adds_to_the_log(self, runner: Runner, data_dir: Path) -> None:
        first = await launch(runner, data_dir, *shell("echo one"))
        await first.ended()
        second = await launch(
            runner, data_dir, *shell("echo two"), job_id=first.order.job_id, number=2
        )
        await second.ended()
        assert second.handle != first.handle
        assert second.lines() == ["one", "two"]
        assert second.order.log.read_text().count("===== Job started at") == 2

    async def test_its_end_is_hinted_at(self, runner: Runner, data_dir: Path) -> None:
        run = await launch(runner, data_dir, *shell("sleep 0.2"))
        async with asyncio.timeout(SOON_SECONDS):
            async for handle in runner.watch():
                if handle == run.handle:
                    break
        assert (await run.seen()).phase is Phase.exited

    async def test_it_knows_what_it_has_until_that_is_removed(
        self, runner: Runner, data_dir: Path
    ) -> None:
        assert await runner.handles() == []
        run = await launch(runner, data_dir, *shell("mkdir -m 0 $HOME/closed; echo kept"))
        assert await runner.handles() == [run.handle]
        await run.ended()
        for _ in range(2):
            await runner.remove(run.handle)
            assert await runner.handles() == []
        assert (await run.seen()).phase is Phase.gone
        assert not run.order.folder.exists()
        assert run.lines() == ["kept"]

    async def test_what_ended_uses_nothing(self, runner: Runner, data_dir: Path) -> None:
        run = await launch(runner, data_dir, *shell("echo ready; exec sleep 600"))
        await run.prints("ready")
        assert await runner.usage(run.handle) is not None
        await runner.stop(run.handle, grace_seconds=0)
        await run.ended()
        assert await runner.usage(run.handle) is None

    async def test_everything_it_started_ends_with_it(self, runner: Runner, data_dir: Path) -> None:
        mark = hashlib.sha256(str(data_dir).encode()).hexdigest()[:6]
        number = 100_000 + int(mark, 16) % 800_000
        script = f"setsid sleep {number} & (sleep {number} &) ; echo ready; sleep 0.2"
        seen, _ = await outcome(runner, data_dir, *shell(script))
        assert seen.exit_code == 0
        assert f"sleep\0{number}\0".encode() not in command_lines()

    async def test_too_much_memory_is_told(self, runner: Runner, data_dir: Path) -> None:
        if not (await runner.probe()).limits:
            pytest.skip("Control groups cannot be made here.")
        seen, _ = await outcome(
            runner,
            data_dir,
            "python3",
            "-c",
            "x = bytearray(300 * 2**20)",
            memory_bytes=64 * MIB,
        )
        assert (seen.out_of_memory, seen.exit_code, seen.signal) == (True, 137, 9)

    async def test_too_many_processes_are_contained(self, runner: Runner, data_dir: Path) -> None:
        if not (await runner.probe()).limits:
            pytest.skip("Control groups cannot be made here.")
        script = (
            "import os, sys, time\n"
            "for n in range(5000):\n"
            "    try:\n"
            "        child = os.fork()\n"
            "    except OSError:\n"
            "        print('refused', flush=True); time.sleep(60)\n"
            "    if not child:\n"
            "        time.sleep(60); sys.exit()\n"
        )
        run = await launch(runner, data_dir, "python3", "-c", script, memory_bytes=4096 * MIB)
        await run.prints("refused")
        await runner.stop(run.handle, grace_seconds=0)
        assert (await run.ended()).signal in {9, 15}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def command_lines() -> list[bytes]:
    """Those of every process of this machine, each word ended by a zero."""
    return [_read(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
