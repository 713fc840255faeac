"""A server dies after git's objects were written and before the database knew: nothing happened."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from faults.bare_repos import (
    check_whole,
    clone_url,
    commits_in,
    folder_in,
    folders_in,
    git,
    start_git,
)
from faults.content import (
    KnownRepo,
    Person,
    branches_of,
    commit,
    commit_body,
    create_repo,
    files_of,
    first_person,
    history_of,
    paths_of,
    post_commit,
)
from faults.content_events import (
    IDLE_HUBLET,
    NOTING_HUBLET,
    RefUpdate,
    prepare_notes,
    ref_updates_of,
    repos_with_waiting_events,
    wait_until_events_are_handled,
)
from faults.locked_database import PATIENT, locked_database
from hublet.events import RepoContentUpdated, RepoCreated, RepoDeleted
from patience import SOON_SECONDS
from processes import Place, Server, serving, wait_until

FILES = {"README.md": b"# Engine\n", "weights/part-1.txt": b"1\n" * 1000}
BODY = commit_body(FILES, summary="Add two files")


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What the first server made, and what it was doing when it died."""

    ada: Person
    # A commit and a push were on their way to these, and both had only their first commit.
    committed: KnownRepo
    pushed: KnownRepo
    deleted: KnownRepo
    heads: dict[KnownRepo, str]
    clone: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarted:
    place: Place
    server: Server
    client: httpx2.Client
    begun: Begun
    # Of which repositories events of each kind were waiting when the first server was dead.
    waiting: dict[str, list[str]]


@pytest.fixture(scope="module")
def restarted(shared_place: Place) -> Iterator[Restarted]:
    """A commit, a push and a creation are killed with their objects on the disk, all at once."""
    place = shared_place
    with serving(place, program=IDLE_HUBLET, variables=PATIENT) as server:
        ada = first_person(server)
        with ada.client(server) as client:
            begun = _begin(place, server, client, ada)
            _kill_with_objects_written(place, server, client, begun)
    prepare_notes(place)
    kinds = (RepoContentUpdated, RepoCreated, RepoDeleted)
    waiting = {event.kind: repos_with_waiting_events(place, event) for event in kinds}
    with serving(place, program=NOTING_HUBLET) as server, ada.client(server) as client:
        yield Restarted(place=place, server=server, client=client, begun=begun, waiting=waiting)


def _begin(place: Place, server: Server, client: httpx2.Client, ada: Person) -> Begun:
    committed, pushed, deleted = (
        create_repo(client, name) for name in ("committed", "pushed", "deleted")
    )
    answer = client.request("DELETE", "/api/repos/delete", json={"name": "deleted"})
    assert answer.status_code == 200, answer.text
    return Begun(
        ada=ada,
        committed=committed,
        pushed=pushed,
        deleted=deleted,
        heads={repo: branches_of(client, repo)["main"] for repo in (committed, pushed)},
        clone=_clone_with_a_commit(place, clone_url(server, pushed.name, token=ada.token)),
    )


def _clone_with_a_commit(place: Place, url: str) -> Path:
    clone = place.folder / "clone"
    git(place.folder, "clone", url, str(clone))
    for path, content in FILES.items():
        (clone / path).parent.mkdir(exist_ok=True)
        (clone / path).write_bytes(content)
    git(clone, "add", ".")
    git(clone, "commit", "-m", "Add two files")
    return clone


def _kill_with_objects_written(
    place: Place, server: Server, client: httpx2.Client, begun: Begun
) -> None:
    """Let changes write their objects to the disk, and nothing to the database."""
    known = folders_in(place)
    changes: list[Callable[[], object]] = [
        lambda: post_commit(client, begun.committed, "main", BODY),
        lambda: start_git(begun.clone, "push").wait(SOON_SECONDS),
        lambda: create_repo(client, "created"),
    ]
    with locked_database(place), ThreadPoolExecutor(len(changes)) as threads:
        changing = [threads.submit(change) for change in changes]
        try:
            wait_until(lambda: _is_all_written(place, begun, known), seconds=SOON_SECONDS)
            assert not any(change.done() for change in changing)
        finally:
            server.process.kill()
        for change in changing:
            with suppress(httpx2.TransportError):
                change.result()


def _is_all_written(place: Place, begun: Begun, known: set[Path]) -> bool:
    new = [folder for folder in folders_in(place) - known if _is_git(folder)]
    changed = [folder_in(place, repo.id) for repo in (begun.committed, begun.pushed)]
    return (
        len(new) == 1
        and len(commits_in(new[0])) == 1
        and all(len(commits_in(folder)) == 2 for folder in changed)
    )


def _is_git(folder: Path) -> bool:
    return all((folder / part).exists() for part in ("HEAD", "objects", "refs"))


def test_no_fact_tells_of_what_did_not_happen(restarted: Restarted) -> None:
    begun = restarted.begun

    assert restarted.waiting == {
        RepoContentUpdated.kind: [],
        RepoCreated.kind: [begun.committed.id, begun.pushed.id, begun.deleted.id],
        RepoDeleted.kind: [begun.deleted.id],
    }


def test_a_commit_did_not_happen_and_can_be_sent_again(restarted: Restarted) -> None:
    repo = restarted.begun.committed
    _check_unchanged(restarted, repo)

    answer = post_commit(restarted.client, repo, "main", BODY)

    assert answer.status_code == 200, answer.text
    _check_came_with(restarted, repo, answer.json()["commitOid"])


def test_a_push_did_not_happen_and_can_be_sent_again(restarted: Restarted) -> None:
    repo, clone = restarted.begun.pushed, restarted.begun.clone
    _check_unchanged(restarted, repo)

    # The server has another port now.
    url = clone_url(restarted.server, repo.name, token=restarted.begun.ada.token)
    git(clone, "push", url, "main")

    _check_came_with(restarted, repo, git(clone, "rev-parse", "HEAD").strip())


def test_a_repository_does_not_exist_and_can_be_created_again(restarted: Restarted) -> None:
    client, ada = restarted.client, restarted.begun.ada
    assert client.get(f"/api/models/{ada.name}/created/refs").status_code == 404

    repo = create_repo(client, "created")

    commit(client, repo, "main", FILES)
    assert files_of(client, repo, "main").items() >= FILES.items()


def test_the_folder_of_a_deleted_repository_goes_with_the_next_server(
    restarted: Restarted,
) -> None:
    repo = restarted.begun.deleted
    wait_until(lambda: not folder_in(restarted.place, repo.id).exists(), seconds=SOON_SECONDS)

    assert restarted.client.get(f"{repo.api}/refs").status_code == 404
    assert create_repo(restarted.client, "deleted").id != repo.id


def _check_unchanged(restarted: Restarted, repo: KnownRepo) -> None:
    head = restarted.begun.heads[repo]
    assert branches_of(restarted.client, repo) == {"main": head}
    assert paths_of(restarted.client, repo, "main") == [".gitattributes"]
    check_whole(folder_in(restarted.place, repo.id), [head])


def _check_came_with(restarted: Restarted, repo: KnownRepo, oid: str) -> None:
    before = restarted.begun.heads[repo]
    assert branches_of(restarted.client, repo) == {"main": oid}
    assert history_of(restarted.client, repo, "main") == [oid, before]
    assert files_of(restarted.client, repo, "main").items() >= FILES.items()
    check_whole(folder_in(restarted.place, repo.id), [oid])
    wait_until_events_are_handled(restarted.place, seconds=SOON_SECONDS)
    told = RefUpdate(ref="refs/heads/main", old_sha=before, new_sha=oid)
    assert ref_updates_of(restarted.place)[repo.id] == [told]
