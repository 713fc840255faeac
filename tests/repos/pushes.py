"""Pushes put together by hand, and what the hub says to them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pygit2

from hublet.core.database import Database
from hublet.repos import store
from hublet.repos.git import bare_repos
from hublet.repos.records import Repo
from hublet.repos.refs import store as refs
from people import Headers
from repos.git_objects import commit_files

NONE = "0" * 40
MAIN = "refs/heads/main"
RESULT = "application/x-git-receive-pack-result"


async def a_repo(
    client: httpx2.AsyncClient, database: Database, headers: Headers, **body: object
) -> Repo:
    """Create a repository through the API; it is called engine unless the body says otherwise."""
    request = {"name": "engine", "type": "model"} | body
    created = await client.post("/api/repos/create", headers=headers, json=request)
    assert created.status_code == 200, created.text
    async with database.read() as conn:
        repo = await store.find(conn, created.json()["id"])
    assert repo is not None
    return repo


def folder_of(database: Database, repo: Repo) -> Path:
    return bare_repos.folder_of(database.hub.settings.database.data_dir, repo.id)


async def refs_of(database: Database, repo: Repo) -> dict[str, str]:
    async with database.read() as conn:
        return {ref.name: ref.sha for ref in await refs.list_of(conn, repo.id)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Clone:
    """Somebody's copy of a repository, which sees what the hub has and writes to itself."""

    folder: Path

    def commit(self, files: dict[str, bytes], *parents: str, message: str = "A commit.") -> str:
        return commit_files(self.folder, files, parents=parents, message=message)

    @property
    def repository(self) -> pygit2.Repository:
        return bare_repos.open_repository(self.folder)

    def pack(self, *shas: str) -> bytes:
        """Return a pack of these commits, each with all its files, or of other objects."""
        builder = pygit2.PackBuilder(self.repository)
        for sha in shas:
            oid = pygit2.Oid(hex=sha)
            is_commit = isinstance(self.repository[oid], pygit2.Commit)
            (builder.add_recur if is_commit else builder.add)(oid)
        target = self.folder / "packed"
        target.mkdir(exist_ok=True)
        builder.write(str(target))
        [written] = target.glob("*.pack")
        data = written.read_bytes()
        for path in target.iterdir():
            path.unlink()
        return data


def a_clone(database: Database, repo: Repo, folder: Path) -> Clone:
    clone = Clone(folder=folder / "clone.git")
    bare_repos.create_empty(clone.folder)
    alternates = clone.folder / "objects" / "info" / "alternates"
    alternates.write_text(f"{folder_of(database, repo) / 'objects'}\n")
    return clone


def line(data: str) -> bytes:
    return b"%04x%b" % (len(data.encode()) + 4, data.encode())


def push_body(
    *commands: tuple[str, str | None, str | None],
    pack: bytes = b"",
    capabilities: str = "report-status",
) -> bytes:
    """Return the body of a push; a command is a ref, where it was and where it goes."""
    lines = [f"{old or NONE} {new or NONE} {ref}" for ref, old, new in commands]
    lines[:1] = [f"{first}\0 {capabilities}" for first in lines[:1]]
    return b"".join(map(line, lines)) + b"0000" + pack


def report_lines(report: bytes) -> list[str]:
    """Return the lines of a report that came without bands."""
    lines: list[str] = []
    while report != b"0000":
        length = int(report[:4], 16)
        lines.append(report[4:length].decode().removesuffix("\n"))
        report = report[length:]
    return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Pusher:
    """Somebody with a clone of a repository, who pushes to the hub."""

    client: httpx2.AsyncClient
    headers: Headers
    database: Database
    repo: Repo
    clone: Clone

    @property
    def head(self) -> str:
        """The first commit of the repository."""
        assert self.repo.head_sha is not None
        return self.repo.head_sha

    @property
    def folder(self) -> Path:
        return folder_of(self.database, self.repo)

    async def refs(self) -> dict[str, str]:
        return await refs_of(self.database, self.repo)

    async def send(
        self, body: bytes | AsyncIterator[bytes], headers: Headers | None = None
    ) -> httpx2.Response:
        return await self.client.post(
            f"/{self.repo.full_name}/git-receive-pack",
            headers=self.headers if headers is None else headers,
            content=body,
        )

    async def push(
        self,
        *commands: tuple[str, str | None, str | None],
        pack: bytes = b"",
        capabilities: str = "report-status",
    ) -> list[str]:
        """Push, and return the lines of the report."""
        body = push_body(*commands, pack=pack, capabilities=capabilities)
        response = await self.send(body)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == RESULT
        return report_lines(response.content)

    async def push_main(self, sha: str) -> str:
        """Push a commit as main where the first one was; return what is told about main."""
        report = await self.push((MAIN, self.head, sha), pack=self.clone.pack(sha))
        return report[1]


async def a_pusher(
    client: httpx2.AsyncClient, database: Database, headers: Headers, folder: Path
) -> Pusher:
    """Return somebody with a new repository and a clone of it below this folder."""
    repo = await a_repo(client, database, headers)
    clone = a_clone(database, repo, folder)
    return Pusher(client=client, headers=headers, database=database, repo=repo, clone=clone)
