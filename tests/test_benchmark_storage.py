"""The loads on the storage, and on nodes that share one: what is counted, and that every part runs."""

import os
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from benchmarks import processes
from benchmarks.figures import Spoiled
from benchmarks.mixed_files import CHANGES, write_changed, write_mixed, write_small_files
from benchmarks.process_trees import PeakMemory, cpu_seconds_of_tree, tree_of, watching_memory
from benchmarks.relay import Relay, relaying
from benchmarks.stock_client import StockClient
from benchmarks.subjects import notify, packs, scale, storage, storage_clients, storage_downloads
from benchmarks.workbench import workbench

from hublet.runtime.cgroups import own_hierarchies
from patience import SOON_SECONDS

SIZE = 4_000_000


def test_a_mixed_file_is_half_noise_and_the_rest_can_be_compressed(tmp_path: Path) -> None:
    data = write_mixed(tmp_path / "mixed", SIZE).read_bytes()

    assert len(data) == SIZE
    assert write_mixed(tmp_path / "odd", SIZE + 3).stat().st_size == SIZE + 3
    noise, weights, text = data[:2_000_000], data[2_000_000:3_000_000], data[3_000_000:SIZE]
    assert len(zlib.compress(noise)) >= len(noise)
    # The upper bytes of numbers are few, and the others are noise.
    assert len(set(weights[3::4])) < 8 < len(set(weights[2::4]))
    assert len(zlib.compress(text)) < len(text) / 2
    assert text.replace(b" ", b"").isalpha()


def test_no_piece_comes_twice(tmp_path: Path) -> None:
    data = write_mixed(tmp_path / "mixed", SIZE).read_bytes()

    pieces = [data[at : at + 1_000] for at in range(0, SIZE, 1_000)]
    assert len({*pieces}) == len(pieces)


def test_a_changed_copy_differs_only_where_it_was_changed(tmp_path: Path) -> None:
    original = write_mixed(tmp_path / "one", SIZE)
    changed = write_changed(original, tmp_path / "two").read_bytes()
    data = original.read_bytes()

    assert len(changed) == SIZE + sum(each.added - each.removed for each in CHANGES)
    assert changed[:400_000] == data[:400_000]
    assert changed[400_000:401_000] != data[400_000:401_000]
    assert changed[401_000:1_600_000] == data[401_000:1_600_000]
    assert changed[1_600_777:3_600_777] == data[1_600_000:3_600_000]
    assert changed[3_600_777:-100_000] == data[3_605_000:]


@pytest.mark.parametrize("suffix", [".txt", ".bin"])
def test_small_files_are_of_a_kind_and_lie_in_folders(tmp_path: Path, suffix: str) -> None:
    folder = write_small_files(tmp_path, 101, suffix=suffix)

    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) == 101
    assert {path.suffix for path in files} == {suffix}
    assert {path.parent.name for path in files} == {"000", "001"}
    assert all(path.read_bytes().isascii() == (suffix == ".txt") for path in files)


@contextmanager
def _a_tree() -> Iterator[int]:
    """Run a process with a child that works, and then waits."""
    child = "x = bytearray(50_000_000); sum(range(5_000_000)); print('done', flush=True); input()"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        yield process.pid
        process.communicate(b"\n")


def test_a_tree_has_the_time_and_the_memory_of_all_its_processes() -> None:
    with _a_tree() as process_id:
        peak = PeakMemory()
        peak.take(process_id)

        assert len(tree_of(process_id)) == 2
        assert cpu_seconds_of_tree(process_id) > 0
        assert 47 < peak.anonymous <= peak.all
    assert tree_of(process_id) == [process_id]


def test_memory_is_watched_until_the_end() -> None:
    with watching_memory(os.getpid()) as peak:
        held = bytearray(60_000_000)
        deadline = time.monotonic() + SOON_SECONDS
        while peak.anonymous < len(held) / 2**20:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_relay_counts_what_is_sent_and_brings_the_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_answer_once, args=(listener,))
        thread.start()
        with relaying(Relay(listener.getsockname()[1])) as relay:
            with socket.create_connection(("127.0.0.1", relay.port)) as connection:
                connection.sendall(b"x" * 1_000_000)
                connection.shutdown(socket.SHUT_WR)
                answer = connection.makefile("rb").read()
            assert (answer, relay.sent) == (b"1000000", 1_000_000)
        thread.join()


def _answer_once(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        received = len(connection.makefile("rb").read())
        connection.sendall(str(received).encode())


def test_a_client_that_fails_spoils_the_measurement(tmp_path: Path) -> None:
    client = StockClient(endpoint="http://127.0.0.1:9", token="hf_x", folder=tmp_path)

    with pytest.raises(Spoiled, match="A client ended with 1"):
        client.upload("not a name", tmp_path)


def test_every_subject_yields_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_READY_SECONDS", SOON_SECONDS)
    with workbench(seconds=1, rounds=1, share=0.01) as bench:
        uploads = list(storage.measure(bench))
        downloads = list(storage_downloads.measure(bench))
        clients = list(storage_clients.measure(bench))

    assert [row.unit for row in uploads] == ["MB/s", "MB", "%", "%"]
    assert [row.unit for row in downloads] == ["MB/s"] * 4
    assert [row.unit for row in clients] == ["MB", "s", "s"]
    assert all(row.ours > 0 for row in [*uploads, *downloads, *clients])


def test_packs_in_a_bucket_are_compared_with_a_folder() -> None:
    with workbench(seconds=1, rounds=1, share=0.001) as bench:
        rows = list(packs.measure(bench))

    assert len(rows) == 6
    assert all(row.ours > 0 and row.other for row in rows)


def test_commits_that_wake_other_processes_are_measured() -> None:
    with workbench(seconds=0.2, rounds=1, share=0.01) as bench:
        rows = list(notify.measure(bench))

    assert [row.unit for row in rows] == ["/s", "ms", "ms"]
    assert all(row.ours > 0 for row in rows)


def test_nodes_are_added_to_everything_that_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    if not any("cpu" in each.controllers for each in own_hierarchies()):
        pytest.skip("Control groups are not ours: nodes cannot be held to a share of a core.")
    every_load = scale._loads  # noqa: SLF001 - each of them starts all nodes again
    monkeypatch.setattr(scale, "_loads", lambda account: {"commit": every_load(account)["commit"]})
    monkeypatch.setattr(scale, "NODES", (1, 2))
    monkeypatch.setattr(scale, "_WARM_UP_SECONDS", 0.5)
    monkeypatch.setattr(scale, "_API_SHARE", 1.0)
    monkeypatch.setattr(scale, "_WORKER_SHARE", 1.0)
    with workbench(seconds=0.5, rounds=1, share=0.001) as bench:
        rows = list(scale.measure(bench))

    assert [row.unit for row in rows] == ["/s"] * 4 + ["µs"] * 2
    assert all(row.ours > 0 for row in rows[:-1])
