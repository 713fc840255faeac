"""Variables that are longer than the kernel takes become files."""

import subprocess
from pathlib import Path

from hublet.jobs.records import MAX_VARIABLE_BYTES
from hublet.runtime.attempt_folder import spill_long_variables


def test_what_fits_stays_and_what_does_not_becomes_a_file(tmp_path: Path) -> None:
    home = tmp_path / "home"
    longest = "é" * ((MAX_VARIABLE_BYTES - len("A=")) // 2)
    environment = {"A": longest, "PAYLOAD": "é" * 70_000, "B": "b"}

    given = spill_long_variables(environment, home=home, seen_at="/home/job")

    assert given == {"A": longest, "PAYLOAD_FILE": "/home/job/.PAYLOAD", "B": "b"}
    assert (home / ".PAYLOAD").read_text(encoding="utf-8") == "é" * 70_000


def test_the_kernel_takes_the_longest_that_is_left(tmp_path: Path) -> None:
    value = "x" * (MAX_VARIABLE_BYTES - len("A="))
    given = spill_long_variables({"A": value}, home=tmp_path, seen_at=str(tmp_path))

    assert given == {"A": value}
    subprocess.run(["/bin/true"], env=given, check=True)
    # One more would be too many.
    assert sorted(spill_long_variables({"A": value + "x"}, home=tmp_path, seen_at="x")) == [
        "A_FILE"
    ]


def test_without_a_long_one_nothing_is_written(tmp_path: Path) -> None:
    assert spill_long_variables({"A": "1"}, home=tmp_path / "home", seen_at="/home/job") == {
        "A": "1"
    }
    assert not (tmp_path / "home").exists()
