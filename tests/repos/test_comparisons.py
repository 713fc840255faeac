"""Commits, comparisons and blame, and who may see what of them."""

import httpx2
import pytest

from hublet.core.database import Database
from hublet.repos.browse import comparisons
from hublet.repos.errors import AccessNotGranted, RepoNotFound, RevisionNotFound
from hublet.repos.records import RepoAddress, RepoType
from people import Headers, sign_in
from repos.content import put
from repositories import a_repo

ADDRESS = RepoAddress(type=RepoType.model, namespace="ada", name="engine")
SETTINGS = "/api/models/ada/engine/settings"


@pytest.fixture
async def commits(client: httpx2.AsyncClient, database: Database, ada: Headers) -> list[str]:
    """The first commit of a repository and two others: one on main, then one on a branch."""
    repo_id = await a_repo(client, ada, "ada/engine")
    first = await put(database, repo_id, {"a": b"1\n"}, message="First.", at=1)
    async with database.read() as conn:
        root = await conn.fetch_value("SELECT head_sha FROM repos")
    assert root == first
    await client.post("/api/models/ada/engine/branch/feature", headers=ada, json={})
    second = await put(
        database, repo_id, {"a": b"1\n2\n"}, ref="refs/heads/feature", message="Second.", at=2
    )
    return [first, second]


async def test_a_commit_comes_with_what_it_changed(database: Database, commits: list[str]) -> None:
    found = await comparisons.get_commit(database, None, ADDRESS, commits[1])
    assert (found.info.id, found.info.title, found.info.parents) == (
        commits[1],
        "Second.",
        (commits[0],),
    )
    assert found.diff is not None
    assert [(file.path, file.additions) for file in found.diff.files] == [("a", 1)]


async def test_a_commit_is_found_by_the_beginning_of_its_id(
    database: Database, commits: list[str]
) -> None:
    found = await comparisons.get_commit(database, None, ADDRESS, commits[1][:7])
    assert found.info.id == commits[1]


@pytest.mark.parametrize("sha", ["0" * 40, "abc", "main", "HEAD", "", "0" * 7, "g" * 40, "../x"])
async def test_what_is_no_commit_is_not_found(
    database: Database, commits: list[str], sha: str
) -> None:
    with pytest.raises(RevisionNotFound):
        await comparisons.get_commit(database, None, ADDRESS, sha)


async def test_a_tree_or_a_file_is_no_commit(
    client: httpx2.AsyncClient, database: Database, commits: list[str]
) -> None:
    [file] = (await client.get("/api/models/ada/engine/tree/main")).json()
    with pytest.raises(RevisionNotFound):
        await comparisons.get_commit(database, None, ADDRESS, file["oid"])


async def test_two_revisions_are_compared_from_where_they_parted(
    database: Database, commits: list[str]
) -> None:
    found = await comparisons.compare(database, None, ADDRESS, "main", "feature")
    divergence = found.divergence
    assert (divergence.merge_base, divergence.ahead, divergence.behind) == (commits[0], 1, 0)
    assert [commit.id for commit in divergence.commits] == [commits[1]]
    assert found.diff is not None
    assert [file.path for file in found.diff.files] == ["a"]
    back = await comparisons.compare(database, None, ADDRESS, "feature", commits[0][:8])
    assert back.divergence.behind == 1
    assert back.diff is not None
    assert back.diff.files == ()


async def test_a_revision_that_does_not_exist_cannot_be_compared(
    database: Database, commits: list[str]
) -> None:
    for base, head in (("main", "nope"), ("0" * 40, "main"), ("1234567", "main")):
        with pytest.raises(RevisionNotFound):
            await comparisons.compare(database, None, ADDRESS, base, head)


async def test_blame_is_of_a_revision(database: Database, commits: list[str]) -> None:
    place, found = await comparisons.blame(database, None, ADDRESS, "feature", "a")
    assert place.commit == commits[1]
    assert [hunk.commit.id for hunk in found.hunks] == commits


async def test_nobody_sees_anything_of_a_private_repository(
    client: httpx2.AsyncClient, database: Database, ada: Headers, commits: list[str]
) -> None:
    await client.put(SETTINGS, headers=ada, json={"private": True})
    with pytest.raises(RepoNotFound):
        await comparisons.get_commit(database, None, ADDRESS, commits[1])
    with pytest.raises(RepoNotFound):
        await comparisons.compare(database, None, ADDRESS, "main", "feature")
    with pytest.raises(RepoNotFound):
        await comparisons.blame(database, None, ADDRESS, "main", "a")


async def test_the_gate_hides_what_changed_but_not_that_it_did(
    client: httpx2.AsyncClient, database: Database, ada: Headers, commits: list[str]
) -> None:
    await client.put(SETTINGS, headers=ada, json={"gated": "manual"})
    commit = await comparisons.get_commit(database, None, ADDRESS, commits[1])
    assert (commit.info.title, commit.diff) == ("Second.", None)
    compared = await comparisons.compare(database, None, ADDRESS, "main", "feature")
    assert (compared.divergence.ahead, compared.diff) == (1, None)
    with pytest.raises(AccessNotGranted):
        await comparisons.blame(database, None, ADDRESS, "main", "a")


COMPARE = "/api/models/ada/engine/compare"


async def test_two_revisions_are_compared_as_git_does(
    client: httpx2.AsyncClient, commits: list[str]
) -> None:
    as_json = await client.get(f"{COMPARE}/main...feature")
    as_text = await client.get(f"{COMPARE}/{commits[0]}..{commits[1][:7]}", params={"raw": True})

    assert as_json.json() == as_text.text
    assert as_text.headers["content-type"].startswith("text/plain")
    assert as_text.text.splitlines()[-3:] == ["@@ -1 +1,2 @@", " 1", "+2"]


async def test_three_dots_leave_out_what_the_old_revision_has_by_itself(
    client: httpx2.AsyncClient, database: Database, commits: list[str]
) -> None:
    async with database.read() as conn:
        repo_id = await conn.fetch_value("SELECT id FROM repos")
    await put(database, repo_id, {"b": b"only in main\n"}, message="Third.", at=3)

    since_both = (await client.get(f"{COMPARE}/main...feature")).json()
    between = (await client.get(f"{COMPARE}/main..feature")).json()

    assert "only in main" not in since_both
    assert "-only in main" in between


@pytest.mark.parametrize("comparison", ["main", "main..", "...main", "main...."])
async def test_a_comparison_names_two_revisions(
    client: httpx2.AsyncClient, commits: list[str], comparison: str
) -> None:
    response = await client.get(f"{COMPARE}/{comparison}")

    assert response.status_code in {400, 404}
    assert response.json()["error"]


async def test_what_differs_too_much_is_refused_with_advice(
    client: httpx2.AsyncClient, commits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparisons, "MAX_PATCH_BYTES", 10)

    response = await client.get(f"{COMPARE}/main...feature")

    assert response.status_code == 413
    assert "git diff" in response.json()["error"]


async def test_the_gate_guards_comparisons(
    client: httpx2.AsyncClient, database: Database, commits: list[str], ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    await client.put(SETTINGS, headers=ada, json={"gated": "manual"})
    gated = await client.get(f"{COMPARE}/main...feature", headers=bob)
    await client.put(SETTINGS, headers=ada, json={"gated": False, "private": True})
    private = await client.get(f"{COMPARE}/main...feature", headers=bob)

    assert (gated.status_code, private.status_code) == (403, 404)


async def test_this_hub_scans_nothing_and_says_so(
    client: httpx2.AsyncClient, commits: list[str]
) -> None:
    response = await client.get("/api/models/ada/engine/scan")

    assert response.json() == {"scansDone": False, "filesWithIssues": []}
