"""What the door looks like from inside the hub, whatever lies behind it."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from hublet.core.mail.letters import Letter


class Post(ABC):
    """Sends letters, one after the other, over what it keeps open until the block ends.

    For one task at a time.
    """

    @abstractmethod
    async def send(self, letter: Letter) -> None:
        """Hand the letter over; LetterRefused when that is in vain, PostUnavailable for now."""

    @abstractmethod
    async def check(self) -> None:
        """Raise PostUnavailable unless letters could be sent now; none is."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of what is open; whatever fails in that is of no interest."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
