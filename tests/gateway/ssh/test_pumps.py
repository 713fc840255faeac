"""Bytes between a descriptor and a channel wait for the slower of them."""

import asyncio
import os

from hublet.gateway.ssh.pumps import Inlet, Outlet
from runtime.attempts import eventually

MANY = 600_000


def a_pipe() -> tuple[int, int]:
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    return reading, writing


async def test_who_sends_faster_than_is_read_is_asked_to_wait() -> None:
    reading, writing = a_pipe()
    said: list[str] = []
    inlet = Inlet(
        writing,
        pause=lambda: said.append("pause"),
        resume=lambda: said.append("resume"),
        finish=lambda: said.append("finish"),
    )
    inlet.write(bytes(MANY))
    inlet.end()
    assert said == ["pause"]

    got = 0
    while got < MANY:
        got += await asyncio.to_thread(_read, reading)

    await eventually(lambda: said == ["pause", "resume", "finish"])
    os.close(reading)
    os.close(writing)


def _read(fd: int) -> int:
    os.set_blocking(fd, True)
    return len(os.read(fd, 65536))


async def test_an_end_that_comes_with_the_rest_is_told_once() -> None:
    reading, writing = a_pipe()
    said: list[str] = []

    def resume() -> None:
        inlet.write(b"rest")
        inlet.end()

    inlet = Inlet(
        writing,
        pause=lambda: None,
        resume=resume,
        finish=lambda: said.append("finish"),
        is_paused=True,
    )
    inlet.write(b"early ")

    assert os.read(reading, 100) == b"early rest"
    assert said == ["finish"]
    os.close(reading)
    os.close(writing)


async def test_what_nobody_reads_any_more_is_dropped() -> None:
    reading, writing = a_pipe()
    said: list[str] = []
    inlet = Inlet(
        writing, pause=lambda: None, resume=lambda: None, finish=lambda: said.append("finish")
    )
    os.close(reading)
    inlet.write(b"lost")
    inlet.end()
    inlet.write(b"too late")

    assert said == ["finish"]
    os.close(writing)


async def test_a_channel_that_is_full_gets_nothing_until_it_is_not() -> None:
    reading, writing = a_pipe()
    got: list[bytes] = []
    outlet = Outlet(reading, deliver=got.append, ended=lambda: got.append(b"end"))
    os.write(writing, b"one")
    await eventually(lambda: got == [b"one"])

    outlet.pause()
    os.write(writing, b"two")
    await asyncio.sleep(0.1)
    assert got == [b"one"]
    outlet.resume()
    await eventually(lambda: got == [b"one", b"two"])

    os.close(writing)
    await eventually(lambda: got == [b"one", b"two", b"end"])
    # It is over, whoever says otherwise.
    outlet.resume()
    outlet.close()
    os.close(reading)


async def test_who_is_over_touches_no_number_that_is_anothers_by_now() -> None:
    reading, writing = a_pipe()
    outlet = Outlet(reading, deliver=lambda _: None, ended=lambda: None)
    outlet.close()
    got: list[bytes] = []
    another = Outlet(reading, deliver=got.append, ended=lambda: None)

    outlet.pause()
    os.write(writing, b"one")

    await eventually(lambda: got == [b"one"])
    another.close()
    os.close(writing)
    os.close(reading)
