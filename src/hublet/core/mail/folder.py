"""Mails as files, for hubs without a mail server and for tests."""

import asyncio
import os
import re
from pathlib import Path

from hublet.core import ids
from hublet.core.mail.errors import PostUnavailable
from hublet.core.mail.letters import Letter
from hublet.core.mail.post import Post


class FolderPost(Post):
    """A file for each letter, named by its message id: a letter that comes twice lies there once.

    Nobody sees half a file, and nobody but the owner of the folder reads one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def send(self, letter: Letter) -> None:
        await asyncio.to_thread(self._write, letter)

    async def check(self) -> None:
        await asyncio.to_thread(self._prepare)

    async def close(self) -> None:
        pass

    def _prepare(self) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _out_of_reach(error) from error
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise PostUnavailable("The folder for mails cannot be written.")

    def _write(self, letter: Letter) -> None:
        from hublet.core.mail.encoding import encode  # noqa: PLC0415 - it takes 30 ms to load

        self._prepare()
        temporary = self._folder / f".{ids.random_bytes(8).hex()}"
        try:
            temporary.touch(mode=0o600, exist_ok=False)
            temporary.write_bytes(encode(letter))
            temporary.replace(self._folder / _file_name(letter))
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise _out_of_reach(error) from error


def _file_name(letter: Letter) -> str:
    name = letter.message_id.strip("<>").partition("@")[0]
    return re.sub(r"[^A-Za-z0-9.-]", "_", name).lstrip(".") + ".eml"


def _out_of_reach(error: OSError) -> PostUnavailable:
    return PostUnavailable(f"The folder for mails cannot be written ({error.strerror}).")
