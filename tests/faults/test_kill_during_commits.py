"""A server is killed in the middle of 200 commits: each is whole or absent, with its one event."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import httpx2

from faults.bare_repos import check_whole, clone_url, commits_in, folder_in, git
from faults.content import (
    KnownRepo,
    Person,
    branches_of,
    content_of,
    files_of,
    first_person,
    history_of,
    paths_of,
)
from faults.content_events import (
    NOTING_HUBLET,
    RefUpdate,
    prepare_notes,
    ref_updates_of,
    wait_until_events_are_handled,
)
from faults.many_commits import (
    BRANCHES,
    AcknowledgedCommits,
    PlannedCommit,
    create_repos,
    plan_commits,
    send,
)
from patience import SOON_SECONDS
from processes import Place, Server, serving

REPOS = 20
CLONES = 5
COMMITS = REPOS * len(BRANCHES)
# The server dies in the moment in which the client has so many answers.
KILLED_AT = (30, 100, 170)
# So many more are sent with those: they are under way when it dies, or were answered just before.
# Never all the rest, because a test that was stopped for a moment would find it done.
MORE = 25


def test_each_commit_is_whole_or_absent_although_the_server_is_killed_three_times(
    place: Place,
) -> None:
    acknowledged = AcknowledgedCommits()
    with serving(place, program=NOTING_HUBLET) as server:
        ada = first_person(server)
        prepare_notes(place)
        with ada.client(server) as client:
            planned = plan_commits(create_repos(client, REPOS))
            _send_until_killed(server, client, planned, acknowledged, at=KILLED_AT[0])
    for answers in KILLED_AT[1:]:
        with serving(place, program=NOTING_HUBLET) as server, ada.client(server) as client:
            _check(client, place, planned, acknowledged)
            _send_until_killed(server, client, planned, acknowledged, at=answers)

    with serving(place, program=NOTING_HUBLET) as server, ada.client(server) as client:
        _check(client, place, planned, acknowledged)
        send(client, acknowledged.rest_of(planned), acknowledged)
        assert len(acknowledged.commits) == COMMITS
        _check(client, place, planned, acknowledged)
        _check_every_file(client, planned)
        _check_clones(place, server, ada, planned)


def _send_until_killed(
    server: Server,
    client: httpx2.Client,
    planned: Sequence[PlannedCommit],
    acknowledged: AcknowledgedCommits,
    *,
    at: int,
) -> None:
    acknowledged.at, acknowledged.then = at, server.process.kill
    sent = at - len(acknowledged.commits) + MORE
    send(client, acknowledged.rest_of(planned)[:sent], acknowledged)
    assert at <= len(acknowledged.commits) <= at + MORE


def _repos_of(planned: Sequence[PlannedCommit]) -> list[KnownRepo]:
    return list(dict.fromkeys(each.repo for each in planned))


def _check(
    client: httpx2.Client,
    place: Place,
    planned: Sequence[PlannedCommit],
    acknowledged: AcknowledgedCommits,
) -> None:
    wait_until_events_are_handled(place, seconds=SOON_SECONDS)
    told = ref_updates_of(place)
    for repo in _repos_of(planned):
        mine = {each: oid for each, oid in acknowledged.commits.items() if each.repo == repo}
        _check_repo(client, place, repo, mine, told.get(repo.id, []))


def _check_repo(
    client: httpx2.Client,
    place: Place,
    repo: KnownRepo,
    acknowledged: dict[PlannedCommit, str],
    told: list[RefUpdate],
) -> None:
    branches = branches_of(client, repo)
    histories = {name: history_of(client, repo, name) for name in branches}
    check_whole(folder_in(place, repo.id), branches.values())
    for each, oid in acknowledged.items():
        assert oid in histories[each.branch]
        assert content_of(client, repo, each.branch, each.path) == each.content
    # Also what was told of a branch that is gone would have to be there.
    assert {each.new_sha for each in told} <= commits_in(folder_in(place, repo.id))
    for name, history in histories.items():
        about_it = [each for each in told if each.ref == f"refs/heads/{name}"]
        _check_facts(history, about_it, is_main=name == "main")


def _check_facts(history: list[str], told: list[RefUpdate], *, is_main: bool) -> None:
    """Insist that each step of a branch was told once, from where it was to where it went.

    Main begins with the repository, for which there is another event.
    """
    begun_at = [each.new_sha for each in told if each.old_sha is None]
    assert len(begun_at) == (not is_main)
    own = history if is_main else history[: history.index(str(begun_at[0])) + 1]
    steps = Counter((each.old_sha, each.new_sha) for each in told if each.old_sha is not None)
    assert steps == Counter(zip(own[1:], own, strict=False))


def _check_every_file(client: httpx2.Client, planned: Sequence[PlannedCommit]) -> None:
    for repo in _repos_of(planned):
        for branch in branches_of(client, repo):
            wanted = {p.path: p.content for p in planned if (p.repo, p.branch) == (repo, branch)}
            assert set(paths_of(client, repo, branch)) >= wanted.keys()
        main = {p.path: p.content for p in planned if (p.repo, p.branch) == (repo, "main")}
        files = files_of(client, repo, "main")
        assert files == {".gitattributes": files[".gitattributes"], **main}


def _check_clones(
    place: Place, server: Server, ada: Person, planned: Sequence[PlannedCommit]
) -> None:
    with ada.client(server) as client:
        for repo in _repos_of(planned)[:CLONES]:
            target = place.folder / repo.id
            git(place.folder, "clone", clone_url(server, repo.name, token=ada.token), str(target))
            assert _files_in(target) == files_of(client, repo, "main")


def _files_in(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    return {path: content for path, content in files.items() if not path.startswith(".git/")}
