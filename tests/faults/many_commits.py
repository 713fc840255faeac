"""Many commits at once to many repositories: work that a kill can interrupt anywhere."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx2

from faults.content import KnownRepo, commit_body, create_repo, post_commit

# Which branch of a repository each of its commits goes to: most meet on the same one.
BRANCHES = ("main", "main", "main", "main", "main", "main", "one", "one", "feature/two", "three")
# What a commit is answered with that another one has overtaken.
CONFLICT = {409, 412}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCommit:
    """A commit that somebody wants to make, of one file that no other commit touches."""

    repo: KnownRepo
    branch: str
    path: str
    content: bytes


def create_repos(client: httpx2.Client, count: int) -> list[KnownRepo]:
    return [create_repo(client, f"engine-{number}") for number in range(count)]


def plan_commits(repos: Iterable[KnownRepo]) -> list[PlannedCommit]:
    """Plan one commit for each of the branches above; neighbours in the list meet on no branch."""
    return [
        PlannedCommit(
            repo=repo,
            branch=branch,
            path=f"folder/{branch}/{number}.txt",
            content=f"Commit {number} to {branch} of {repo.name}.\n".encode(),
        )
        for number, branch in enumerate(BRANCHES)
        for repo in repos
    ]


@dataclass(slots=True, kw_only=True)
class AcknowledgedCommits:
    """The commits that the hub answered with 200, with their ids; threads write it together."""

    commits: dict[PlannedCommit, str] = field(default_factory=dict)
    # Called once, by the thread that gets the answer of this number.
    at: int | None = None
    then: Callable[[], None] = lambda: None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def rest_of(self, planned: Iterable[PlannedCommit]) -> list[PlannedCommit]:
        return [each for each in planned if each not in self.commits]

    def add(self, planned: PlannedCommit, oid: str) -> None:
        with self._lock:
            self.commits[planned] = oid
            is_the_moment = len(self.commits) == self.at
        if is_the_moment:
            self.then()


def send(
    client: httpx2.Client, planned: Sequence[PlannedCommit], acknowledged: AcknowledgedCommits
) -> None:
    """Send every commit at the same time; return when each is acknowledged, or the hub is gone."""
    with ThreadPoolExecutor(len(planned)) as threads:
        for sent in [threads.submit(_send, client, each, acknowledged) for each in planned]:
            sent.result()


def _send(client: httpx2.Client, planned: PlannedCommit, acknowledged: AcknowledgedCommits) -> None:
    try:
        acknowledged.add(planned, _commit(client, planned))
    except httpx2.TransportError:
        # The hub was killed. Whether it made the commit before that, nobody knows.
        return


def _commit(client: httpx2.Client, planned: PlannedCommit) -> str:
    if planned.branch != "main":
        answer = client.post(f"{planned.repo.api}/branch/{planned.branch}", json={})
        assert answer.status_code in {200, 409}, answer.text
    body = commit_body({planned.path: planned.content}, summary=f"Add {planned.path}")
    while True:
        answer = post_commit(client, planned.repo, planned.branch, body)
        if answer.status_code == 200:
            oid: str = answer.json()["commitOid"]
            return oid
        # Others moved the branch meanwhile; nothing else may go wrong.
        assert answer.status_code in CONFLICT, answer.text
