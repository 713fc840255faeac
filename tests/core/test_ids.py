import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from hublet.core import clock, ids

PROCESS = 0xA_ABBC_CDDE
SECOND = 0x65_00_00_01
# A microsecond in it, and the same in the digits of an id.
MICROS, DIGITS = 999_998, "f423e"


@pytest.fixture
def stop_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Hold the clock so many microseconds after the second."""
    return lambda micros: monkeypatch.setattr(clock, "micros", lambda: SECOND * 1_000_000 + micros)


def test_an_object_id_is_made_of_second_microsecond_process_and_counter(
    stop_clock: Callable[[int], None],
) -> None:
    stop_clock(MICROS)
    row = ids.ObjectIds(process=PROCESS)

    assert row.next() == "65000001" + DIGITS + "aabbccdde" + "00"
    assert row.next() == "65000001" + DIGITS + "aabbccdde" + "01"


def test_a_full_counter_carries_into_the_microsecond_and_the_second(
    stop_clock: Callable[[int], None],
) -> None:
    stop_clock(MICROS)
    row = ids.ObjectIds(process=PROCESS)
    made = [row.next() for _ in range(513)]

    assert made[255:257] == ["65000001f423eaabbccddeff", "65000001f423faabbccdde00"]
    assert made[-1] == "65000002" + "00000" + "aabbccdde" + "00"


def test_a_clock_turned_back_is_not_followed(stop_clock: Callable[[int], None]) -> None:
    row = ids.ObjectIds(process=PROCESS)

    stop_clock(MICROS)
    first = row.next()
    stop_clock(-MICROS)

    assert [first[-2:], row.next()] == ["00", first[:-2] + "01"]


def test_ids_of_two_processes_sort_by_the_microsecond(stop_clock: Callable[[int], None]) -> None:
    high, low = ids.ObjectIds(process=0xF_FFFF_FFFF), ids.ObjectIds(process=0)
    made = []
    for micros in range(0, 40, 2):
        for later, row in enumerate((high, low)):
            stop_clock(micros + later)
            made.append(row.next())

    assert made == sorted(made)


def test_object_ids_grow_as_text() -> None:
    made = [ids.new_object_id() for _ in range(5000)]

    assert all(one < next_one for one, next_one in pairwise(made))
    assert all(ids.is_object_id(one) for one in made)


def test_object_ids_of_several_threads_differ() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: ids.new_object_id(), range(8000)))

    assert len(set(made)) == 8000


def test_a_forked_process_draws_its_own_random_part() -> None:
    # Forking the test process itself would warn about its threads.
    script = """
import os
from hublet.core import ids
print(ids.new_object_id(), flush=True)
if os.fork() == 0:
    print(ids.new_object_id(), flush=True)
    os._exit(0)
os.wait()
print(ids.new_object_id(), flush=True)
"""
    output = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True).stdout
    parent, child, parent_later = output.decode().split()

    assert parent[13:22] == parent_later[13:22]
    assert child[13:22] != parent[13:22]
    assert ids.is_object_id(child)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("0123456789abcdef01234567", True, id="24 lowercase hex characters"),
        pytest.param("0123456789ABCDEF01234567", False, id="upper case"),
        pytest.param("0123456789abcdef0123456", False, id="one too few"),
        pytest.param("0123456789abcdef012345678", False, id="one too many"),
        pytest.param("0123456789abcdef01234567\n", False, id="a line break at the end"),
        pytest.param("0123456789abcdef0123456g", False, id="not hex"),
        pytest.param("\u0660123456789abcdef01234567", False, id="a digit of another script"),
        pytest.param("", False, id="empty"),
    ],
)
def test_what_is_an_object_id(text: str, *, expected: bool) -> None:
    assert ids.is_object_id(text) is expected


def test_request_ids_are_32_hex_characters_and_differ() -> None:
    made = {ids.new_request_id() for _ in range(1000)}

    assert len(made) == 1000
    assert all(len(one) == 32 and int(one, 16) >= 0 for one in made)


def test_random_bytes_have_the_length_asked_for_and_differ() -> None:
    assert [len(ids.random_bytes(count)) for count in (0, 1, 32)] == [0, 1, 32]
    assert ids.random_bytes(32) != ids.random_bytes(32)


def test_random_text_uses_the_whole_alphabet_and_nothing_else() -> None:
    text = ids.random_text(2000, "abc€")

    assert len(text) == 2000
    assert set(text) == set("abc€")


def test_a_child_process_does_not_give_the_request_ids_of_its_parent_away() -> None:
    ids.new_request_id()
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writer, ids.new_request_id().encode())
        os._exit(0)
    os.waitpid(child, 0)

    assert os.read(reader, 32).decode() not in {ids.new_request_id() for _ in range(64)}
    os.close(reader)
    os.close(writer)
