"""Work that fails is logged and tried again; only a cancellation of its own task ends it."""

import asyncio

import pytest

from hublet.core.retries import retry


class Work:
    """Fails with each of these errors in turn, then succeeds."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.logged: list[BaseException] = []

    async def __call__(self) -> str:
        if self.errors:
            raise self.errors.pop(0)
        return "done"


async def test_work_is_tried_until_it_succeeds() -> None:
    errors = OSError("one"), ValueError("two")
    work = Work(*errors)

    assert await retry(work, log_failure=work.logged.append, seconds=0) == "done"
    assert work.logged == list(errors)


async def test_a_cancelled_future_is_a_failure_like_any_other() -> None:
    """Taken for the end of the loop, it would end it for good."""
    work = Work(asyncio.CancelledError())

    assert await retry(work, log_failure=work.logged.append, seconds=0) == "done"
    assert len(work.logged) == 1


async def test_an_error_of_another_kind_is_raised() -> None:
    work = Work(OSError("away"), ValueError("broken"))

    with pytest.raises(ValueError, match="broken"):
        await retry(work, log_failure=work.logged.append, seconds=0, on=OSError)
    assert len(work.logged) == 1


async def test_who_is_cancelled_ends_at_once() -> None:
    logged: list[BaseException] = []
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(retry(work, log_failure=logged.append))
    await begun.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert logged == []
