"""Deadlines: a call ends in time, and a cancellation from outside stays one."""

import asyncio

import pytest

from hublet.core.clock import monotonic
from hublet.core.outgoing.timings import DeadlineWatch
from patience import SOON_SECONDS


async def test_what_takes_too_long_is_ended() -> None:
    begun = monotonic()

    with pytest.raises(TimeoutError), DeadlineWatch().within(0.1):
        await asyncio.sleep(SOON_SECONDS)

    assert 0.1 <= monotonic() - begun < SOON_SECONDS
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_what_is_done_in_time_is_left_alone() -> None:
    watch = DeadlineWatch()
    for _ in range(3):
        with watch.within(0.1):
            await asyncio.sleep(0.02)
    await asyncio.sleep(0.2)


async def test_each_deadline_is_its_own() -> None:
    watch = DeadlineWatch()

    async def work(seconds: float) -> str:
        try:
            with watch.within(seconds):
                await asyncio.sleep(0.3)
        except TimeoutError:
            return "late"
        return "done"

    assert list(await asyncio.gather(work(0.1), work(5), work(0.15))) == ["late", "done", "late"]


async def test_the_watch_works_again_after_a_rest() -> None:
    watch = DeadlineWatch()
    for _ in range(2):
        with pytest.raises(TimeoutError), watch.within(0.05):
            await asyncio.sleep(SOON_SECONDS)
        await asyncio.sleep(0.15)


async def test_a_cancellation_from_outside_is_not_a_timeout() -> None:
    watch = DeadlineWatch()

    async def work() -> None:
        with watch.within(10):
            await asyncio.sleep(SOON_SECONDS)

    task = asyncio.create_task(work())
    await asyncio.sleep(0.01)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_in_the_same_moment_wins() -> None:
    watch = DeadlineWatch()

    async def work() -> None:
        with watch.within(0.05):
            try:
                await asyncio.sleep(SOON_SECONDS)
            except asyncio.CancelledError:
                # The deadline has passed; before the block ends, somebody else cancels too.
                task.cancel()
                raise

    task = asyncio.create_task(work())

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_another_error_is_not_a_timeout() -> None:
    async def fail_when_ended() -> None:
        try:
            await asyncio.sleep(SOON_SECONDS)
        except asyncio.CancelledError:
            raise KeyError("own") from None

    with pytest.raises(KeyError), DeadlineWatch().within(0.05):
        await fail_when_ended()


async def test_a_deadline_needs_a_task() -> None:
    loop = asyncio.get_running_loop()
    told: asyncio.Future[str] = loop.create_future()

    def outside() -> None:
        try:
            DeadlineWatch().within(1).__enter__()
        except RuntimeError as error:
            told.set_result(str(error))

    loop.call_soon(outside)

    assert await told == "A deadline holds for a task."
