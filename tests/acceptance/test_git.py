"""The real git against a real hub: clone, edit, push, and what it says when it may not."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import httpx2
import pytest

from patience import SOON_SECONDS
from processes import Place, Server, clean_environment, run_hublet, serving

_numbers = count(1)

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    server: Server
    place: Place
    client: httpx2.Client = field(repr=False)

    @property
    def token(self) -> str:
        assert self.server.token
        return self.server.token

    def create(self, **body: object) -> str:
        """Create a repository of a new name; return that in the form owner/name."""
        wanted = {"name": f"engine-{next(_numbers)}"} | body
        created = self.client.post("/api/repos/create", json=wanted)
        assert created.status_code == 200, created.text
        return str(created.json()["name"])

    def url(self, name: str, token: str | None = None) -> str:
        credentials = f"git:{token}@" if token else ""
        return self.server.address.replace("://", f"://{credentials}") + f"/{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A working copy."""

    folder: Path

    def git(self, *arguments: str) -> str:
        """Run git, insist on success, and return what it said."""
        done = run_git(*arguments, folder=self.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip() + done.stderr.strip()

    def fails(self, *arguments: str) -> str:
        done = run_git(*arguments, folder=self.folder)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def commit(self, path: str, content: bytes) -> str:
        (self.folder / path).write_bytes(content)
        self.git("add", path)
        self.git("commit", "-q", "-m", f"Write {path}.")
        return self.git("rev-parse", "HEAD")


def run_git(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run git as a stranger to this machine, who cannot be asked for a password."""
    variables = {
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.com",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.com",
        "LC_ALL": "C",
    }
    return subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env=clean_environment(variables),
        capture_output=True,
        text=True,
        timeout=2 * SOON_SECONDS,
        check=False,
    )


@pytest.fixture(scope="module")
def hub(shared_place: Place) -> Iterator[Hub]:
    with serving(shared_place) as server, server.client(server.token) as client:
        yield Hub(server=server, place=shared_place, client=client)


def clone(hub: Hub, name: str, folder: Path, *options: str) -> Work:
    target = folder / f"work-{next(_numbers)}"
    done = run_git("clone", *options, hub.url(name, hub.token), str(target), folder=folder)
    assert done.returncode == 0, done.stderr
    return Work(folder=target)


def test_clone_edit_push_and_clone_again(hub: Hub, tmp_path: Path) -> None:
    name = hub.create()
    work = clone(hub, name, tmp_path)
    assert [path.name for path in work.folder.iterdir() if path.name != ".git"] == [
        ".gitattributes"
    ]

    sha = work.commit("a.txt", b"one\n")
    work.git("push")
    again = clone(hub, name, tmp_path)

    assert again.git("rev-parse", "HEAD") == sha
    assert (again.folder / "a.txt").read_bytes() == b"one\n"
    again.git("fsck", "--strict")


def test_a_push_is_seen_through_the_api_at_once(hub: Hub, tmp_path: Path) -> None:
    name = hub.create()
    work = clone(hub, name, tmp_path)
    sha = work.commit("a.txt", b"one\n")

    work.git("push")

    assert hub.client.get(f"/api/models/{name}").json()["sha"] == sha


def test_a_private_repository_needs_a_token_that_may_read_it(hub: Hub, tmp_path: Path) -> None:
    name = hub.create(visibility="private")
    run_hublet("user", "add", "bob", *hub.place.flags, folder=hub.place.folder)
    made = run_hublet("token", "create", "bob", *hub.place.flags, folder=hub.place.folder)

    def refused(token: str | None) -> str:
        done = run_git("clone", hub.url(name, token), "work", folder=tmp_path)
        assert done.returncode != 0
        return done.stderr

    assert "could not read Username" in refused(None)
    assert "remote: Invalid credentials in Authorization header" in refused("hf_wrong")
    assert "remote: Repository not found" in refused(made.stdout.strip())
    assert clone(hub, name, tmp_path).git("log", "--format=%s") == "initial commit"


def test_a_token_that_may_only_read_clones_but_does_not_push(hub: Hub, tmp_path: Path) -> None:
    name = hub.create(visibility="private")
    assert hub.server.user
    flags = ("--role", "read", *hub.place.flags)
    made = run_hublet("token", "create", hub.server.user, *flags, folder=hub.place.folder)
    token = made.stdout.strip()
    run_git("clone", hub.url(name, token), "work", folder=tmp_path)
    work = Work(folder=tmp_path / "work")
    work.commit("a.txt", b"one\n")

    said = work.fails("push")

    assert f"remote: You cannot do this with {name}: the token lacks the scope" in said
    assert token not in said.replace(hub.url(name, token), "")


def test_a_large_file_is_refused_with_the_way_out(hub: Hub, tmp_path: Path) -> None:
    work = clone(hub, hub.create(), tmp_path)
    before = work.git("rev-parse", "HEAD")
    work.commit("model.dat", bytes(12 << 20))

    said = work.fails("push")

    assert "files over 10 MiB belong into git-lfs: model.dat (12.0 MiB)" in said
    assert before in work.git("ls-remote", "origin", "main")


def test_history_is_replaced_only_by_force(hub: Hub, tmp_path: Path) -> None:
    work = clone(hub, hub.create(), tmp_path)
    work.commit("a.txt", b"one\n")
    work.git("push")
    work.git("reset", "-q", "--hard", "HEAD~1")
    sha = work.commit("b.txt", b"two\n")

    assert "non-fast-forward" in work.fails("push")
    work.git("push", "--force")

    assert sha in work.git("ls-remote", "origin", "main")


def test_branches_and_tags_come_and_go(hub: Hub, tmp_path: Path) -> None:
    work = clone(hub, hub.create(), tmp_path)
    work.git("tag", "light")
    work.git("tag", "-a", "heavy", "-m", "A tag with a message.")
    work.git("push", "origin", "HEAD:refs/heads/feature/x", "--tags")

    names = [line.split("\t")[1] for line in work.git("ls-remote", "origin").splitlines()]
    assert names == [
        "HEAD",
        "refs/heads/feature/x",
        "refs/heads/main",
        "refs/tags/heavy",
        "refs/tags/heavy^{}",
        "refs/tags/light",
    ]
    work.git("push", "origin", "--delete", "feature/x", "light", "heavy")
    assert "main cannot be deleted" in work.fails("push", "origin", "--delete", "main")
    left = [line.split("\t")[1] for line in work.git("ls-remote", "origin").splitlines()]
    assert left == ["HEAD", "refs/heads/main"]


def test_nothing_to_push_is_said_by_git_itself(hub: Hub, tmp_path: Path) -> None:
    work = clone(hub, hub.create(), tmp_path)

    assert "Everything up-to-date" in work.git("push")


def test_of_pushes_at_the_same_time_one_wins(hub: Hub, tmp_path: Path) -> None:
    name = hub.create()
    works = [clone(hub, name, tmp_path) for _ in range(4)]
    commits = [work.commit("a.txt", b"%d\n" % number) for number, work in enumerate(works)]

    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda work: run_git("push", folder=work.folder), works))

    won = [sha for sha, each in zip(commits, done, strict=True) if each.returncode == 0]
    assert len(won) == 1
    assert all("fetch first" in each.stderr for each in done if each.returncode != 0)
    assert won[0] in works[0].git("ls-remote", "origin", "main")


@pytest.mark.parametrize("version", ["0", "2"])
def test_clones_that_are_not_whole(hub: Hub, tmp_path: Path, version: str) -> None:
    name = hub.create()
    work = clone(hub, name, tmp_path)
    for number in range(3):
        work.commit("a.txt", b"%d\n" % number)
    work.git("push")
    protocol = ("-c", f"protocol.version={version}")

    shallow = clone(hub, name, tmp_path, "--depth", "1", *protocol)
    lazy = clone(hub, name, tmp_path, "--filter=blob:none", *protocol)
    shallow.commit("b.txt", b"from a shallow clone\n")
    shallow.git("push")

    assert len(shallow.git("log", "--format=%h").splitlines()) == 2
    assert (lazy.folder / "a.txt").read_bytes() == b"2\n"
    work.git("pull", "-q")
    assert (work.folder / "b.txt").exists()


def test_a_large_push_goes_through(hub: Hub, tmp_path: Path) -> None:
    # Beyond a megabyte git sends a body of unknown length, and asks first whether it is let in.
    name = hub.create()
    work = clone(hub, name, tmp_path)
    for number in range(40):
        (work.folder / f"{number}.txt").write_bytes(os.urandom(100_000))
    work.git("add", ".")
    work.git("commit", "-q", "-m", "Many files.")
    work.git("push")

    again = clone(hub, name, tmp_path)
    assert again.git("rev-parse", "HEAD^{tree}") == work.git("rev-parse", "HEAD^{tree}")


def test_the_old_address_of_a_moved_repository_still_works(hub: Hub, tmp_path: Path) -> None:
    name = hub.create()
    work = clone(hub, name, tmp_path)
    body = {"fromRepo": name, "toRepo": f"{name}-moved", "type": "model"}
    assert hub.client.post("/api/repos/move", json=body).status_code == 200
    sha = work.commit("a.txt", b"one\n")

    work.git("push")

    assert sha in work.git("ls-remote", hub.url(f"{name}-moved", hub.token), "main")


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
def test_git_lfs_brings_large_files(hub: Hub, tmp_path: Path) -> None:
    name = hub.create()
    work = clone(hub, name, tmp_path)
    work.git("lfs", "install", "--local")
    work.commit("model.bin", bytes(12 << 20))

    work.git("push")

    again = clone(hub, name, tmp_path)
    again.git("lfs", "install", "--local")
    again.git("lfs", "pull")
    assert (again.folder / "model.bin").read_bytes() == bytes(12 << 20)


class _RelativePlace(Place):
    @property
    def flags(self) -> list[str]:
        return ["--data-dir", "data"]


def test_a_relative_data_folder_serves_git_too(tmp_path: Path) -> None:
    # It is the default: `hublet-data` where the hub was started.
    place = _RelativePlace(folder=tmp_path)
    with serving(place) as server, server.client(server.token) as client:
        name = Hub(server=server, place=place, client=client).create()
        url = server.address.replace("://", f"://git:{server.token}@") + f"/{name}"
        cloned = run_git("clone", "-q", url, "copy", folder=tmp_path)
        assert cloned.returncode == 0, cloned.stderr
        work = Work(folder=tmp_path / "copy")
        sha = work.commit("a.txt", b"a")
        work.git("push", "-q", "origin", "main")

        assert client.get(f"/api/models/{name}").json()["sha"] == sha
