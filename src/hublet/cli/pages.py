"""Reading a whole list that its store gives in pages."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def every(page: Callable[[str], Awaitable[list[T]]], id_of: Callable[[T], str]) -> list[T]:
    """Read on after the last id until a page is empty."""
    found: list[T] = []
    while batch := await page(id_of(found[-1]) if found else ""):
        found += batch
    return found
