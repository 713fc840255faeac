"""Repositories: a hub with a million of them, of many owners, a third of them private."""

import json
from collections.abc import Mapping

from benchmarks.growth.curves import Operation, Topic
from benchmarks.growth.local_app import ids_from

_OWNERS = 1_000
_OWN = 20
_RARE = 20


class Repositories(Topic):
    """Models; one in twenty belongs to the caller."""

    name = "repositories"
    sizes = (1_000, 10_000, 100_000, 1_000_000)

    async def grow(self, before: int, size: int) -> None:
        if not before:
            await self._begin()
        numbers = range(before, size)
        ids = ids_from(before, size - before)
        await self.app.add_copies(
            "repos",
            self._row,
            (self._repo(each, repo_id) for each, repo_id in zip(numbers, ids, strict=True)),
        )
        await self.app.index_names()
        links = {"type": "model", "kind": "tag", "target": "common", "repo_id": ""}
        marked = [(each, repo_id) for each, repo_id in zip(numbers, ids, strict=True) if each % 2]
        await self.app.add_copies("repo_links", links, ({"repo_id": each} for _, each in marked))
        if not before:
            rare = ({"repo_id": each, "target": "rare"} for each in ids[:_RARE])
            await self.app.add_copies("repo_links", links, rare)
        self._size = size

    async def _begin(self) -> None:
        self._made = 0
        await self._create()
        self._row = await self.app.row_of("repos", name="engine-0")
        user = await self.app.row_of("users", name="ada")
        name = await self.app.row_of("names", key="ada")
        self._owners = ids_from(0, _OWNERS)
        numbered = [(f"maker-{number}", each) for number, each in enumerate(self._owners)]
        await self.app.add_copies(
            "users", user, ({"id": key, "name": each, "fullname": each} for each, key in numbered)
        )
        await self.app.add_copies(
            "names", name, ({"key": each, "account_id": key} for each, key in numbered)
        )

    def _repo(self, number: int, repo_id: str) -> Mapping[str, object]:
        is_own = number % _OWN == 0
        tags = ["common"] if number % 2 else []
        return {
            "id": repo_id,
            "owner_id": self.app.user.id if is_own else self._owners[number % _OWNERS],
            "name": f"model-{number}",
            "name_key": f"model-{number}",
            "visibility": "private" if number % 3 == 0 else "public",
            "tags": json.dumps(["rare", *tags] if number < _RARE else tags),
            "likes": number % 97,
            "downloads": number % 1009,
            "size": number,
            "created_at": int(repo_id[:8], 16) * 1_000_000,
            "updated_at": int(repo_id[:8], 16) * 1_000_000,
        }

    async def _create(self) -> None:
        await self.app.ask("POST", "/api/repos/create", {"name": f"engine-{self._made}"})
        self._made += 1

    def operations(self) -> Mapping[str, Operation]:
        asked = {
            "page of a list": "/api/models?limit=20",
            "page of a list, by likes": "/api/models?limit=20&sort=likes",
            "list with a rare tag": "/api/models?limit=20&filter=rare",
            "search of a list, one found": f"/api/models?search=model-{self._size // 2 | 1}",
            "page of one's own": "/api/settings/repositories?limit=20",
            "one repository": "/api/models/ada/engine-0",
            "whoami": "/api/whoami-v2",
        }
        operations = {name: self.getting(path) for name, path in asked.items()}
        return {**operations, "a new repository": Operation(run=self._create)}
