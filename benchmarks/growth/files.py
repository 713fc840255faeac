"""Files of one repository, a hundred in each folder, in ten folders of folders."""

from collections.abc import Mapping
from urllib.parse import urlencode

from benchmarks.content import NDJSON, commit_body
from benchmarks.growth.curves import Operation, Topic
from hublet.core.paging import write_cursor
from hublet.repos.browse.revisions import write_tree_cursor

_REPO = "ada/engine"
_PER_FOLDER = 100
_IN_ROOT = 10
_FILES_PER_COMMIT = 20_000


class Files(Topic):
    """Files in git; the root and the folders of files hold as many at every size."""

    name = "files"
    sizes = (1_000, 10_000, 100_000)

    async def grow(self, before: int, size: int) -> None:
        if not before:
            self._changes = 0
            await self.app.ask("POST", "/api/repos/create", {"name": "engine"})
        for start in range(before, size, _FILES_PER_COMMIT):
            numbers = range(start, min(start + _FILES_PER_COMMIT, size))
            await self._commit({_path(number): b"%06d\n" % number for number in numbers})
        # In the sixth of the ten folders.
        self._middle = _path(min(size // 2 // 1_000 * 1_000 + 500, size - 1))

    async def _commit(self, files: Mapping[str, bytes]) -> None:
        path = f"/api/models/{_REPO}/commit/main"
        answer = await self.app.ask("POST", path, commit_body(files), media_type=NDJSON)
        self._head: str = answer.json["commitOid"]

    def operations(self) -> Mapping[str, Operation]:
        tree = f"/api/models/{_REPO}/tree/main"
        cursor = write_cursor(write_tree_cursor(self._head, self._middle))
        behind = urlencode({"cursor": cursor})
        return {
            "page of the root": self.getting(tree),
            "page of all, in the middle": self.getting(f"{tree}?recursive=true&limit=100&{behind}"),
            "one file": self.getting(f"/{_REPO}/resolve/main/{self._middle}"),
            "one path": Operation(run=self._ask_for_path),
            "a commit of one file": Operation(run=self._change_one),
        }

    async def _ask_for_path(self) -> None:
        body = {"paths": [self._middle]}
        await self.app.ask("POST", f"/api/models/{_REPO}/paths-info/main", body)

    async def _change_one(self) -> None:
        self._changes += 1
        await self._commit({self._middle: b"%08d\n" % self._changes})


def _path(number: int) -> str:
    folder = number // _PER_FOLDER
    return f"folder-{folder % _IN_ROOT}/folder-{folder:05}/{number:06}.txt"
