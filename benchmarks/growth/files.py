"""Files of one repository, in folders of a thousand."""

from collections.abc import Mapping
from urllib.parse import urlencode

from benchmarks.content import NDJSON, commit_body
from benchmarks.growth.curves import Operation, Topic
from hublet.core.paging import write_cursor
from hublet.repos.browse.revisions import write_tree_cursor

_REPO = "ada/engine"
_PER_FOLDER = 1_000
_FILES_PER_COMMIT = 20_000


class Files(Topic):
    """Files in git; those of one folder are as many at every size but the smallest."""

    name = "files"
    sizes = (1_000, 10_000, 100_000)

    async def grow(self, before: int, size: int) -> None:
        if not before:
            self._changes = 0
            await self.app.ask("POST", "/api/repos/create", {"name": "engine"})
        for start in range(before, size, _FILES_PER_COMMIT):
            numbers = range(start, min(start + _FILES_PER_COMMIT, size))
            await self._commit({_path(number): b"%06d\n" % number for number in numbers})
        self._size = size

    async def _commit(self, files: Mapping[str, bytes]) -> None:
        path = f"/api/models/{_REPO}/commit/main"
        answer = await self.app.ask("POST", path, commit_body(files), media_type=NDJSON)
        self._head: str = answer.json["commitOid"]

    def operations(self) -> Mapping[str, Operation]:
        tree = f"/api/models/{_REPO}/tree/main"
        middle = _path(self._size // 2)
        behind = urlencode({"cursor": write_cursor(write_tree_cursor(self._head, middle))})
        return {
            "page of the root": self.getting(tree),
            "page of all, in the middle": self.getting(f"{tree}?recursive=true&limit=100&{behind}"),
            "one file": self.getting(f"/{_REPO}/resolve/main/{middle}"),
            "one path": Operation(run=self._ask_for_path),
            "a commit of one file": Operation(run=self._change_one),
        }

    async def _ask_for_path(self) -> None:
        body = {"paths": [_path(self._size // 2)]}
        await self.app.ask("POST", f"/api/models/{_REPO}/paths-info/main", body)

    async def _change_one(self) -> None:
        self._changes += 1
        await self._commit({_path(self._size // 2): b"%08d\n" % self._changes})


def _path(number: int) -> str:
    return f"folder-{number // _PER_FOLDER:05}/{number:06}.txt"
