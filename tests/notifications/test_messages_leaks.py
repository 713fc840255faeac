"""Credentials that somebody put where everybody can read them."""

from pathlib import Path

import httpx2
import pytest

from hublet.core.database import Database
from hublet.events import SecretDetected, UpdatedRef
from hublet.notifications.mail import mail_queue
from hublet.notifications.messages import leaks
from hublet.notifications.messages.leaks import LeakSearch, credentials_in, search_folder
from hublet.notifications.preferences.switches import PreferenceKey
from hublet.repos.git import bare_repos
from hublet.tokens.format import TokenKind, new_credential
from notifications.hub_messages import MailRecorder, ReceivedMessage
from outbox_events import published_events
from people import Headers, a_token, a_user
from repos.git_objects import commit_files
from repositories import a_push, a_repo
from workers import drain

VALUE = new_credential("hf_", TokenKind.access)
OAUTH = new_credential("hf_", TokenKind.oauth)


@pytest.fixture
def mails(monkeypatch: pytest.MonkeyPatch) -> MailRecorder:
    mails = MailRecorder()
    monkeypatch.setattr(mail_queue, "queue_message_mail", mails.mail_of_message)
    return mails


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(f'token = "{VALUE}"', {VALUE}, id="in quotes"),
        pytest.param(VALUE, {VALUE}, id="alone"),
        pytest.param(f"{VALUE}\n{OAUTH}.", {VALUE, OAUTH}, id="two, of two kinds"),
        pytest.param(f"\xff{VALUE}\xfe", {VALUE}, id="among bytes that are no text"),
        pytest.param(VALUE[:-1] + "!", set(), id="its end is missing"),
        pytest.param(VALUE[:-1] + chr(ord(VALUE[-1]) ^ 1), set(), id="the checksum is wrong"),
        pytest.param(f"x{VALUE}", set(), id="the end of a longer word"),
        pytest.param(f"{VALUE}x", set(), id="the start of a longer word"),
        pytest.param(VALUE.replace("hf_", "xy_"), set(), id="of another hub"),
        pytest.param("", set(), id="nothing"),
    ],
)
def test_a_credential_is_known_by_its_form_and_its_checksum(text: str, found: set[str]) -> None:
    assert credentials_in(text.encode("latin-1"), prefix="hf_") == found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "bare.git"
    bare_repos.create_empty(folder)
    return folder


def looked(folder: Path, new: str, old: str | None = None, head: str | None = None) -> list[str]:
    """Return what is found when a branch moves, as value and path."""
    moved = UpdatedRef(ref="refs/heads/main", old_sha=old, new_sha=new)
    wanted = LeakSearch(repo_id="a" * 24, updated_refs=(moved,), head_sha=head or new)
    return [f"{each.value} {each.path}" for each in search_folder(folder, wanted, prefix="hf_")]


def test_only_what_is_new_is_looked_at(folder: Path) -> None:
    first = commit_files(folder, {"a.txt": VALUE.encode()})
    second = commit_files(folder, {"a.txt": VALUE.encode(), "b.txt": b"x"}, parents=(first,))
    third = commit_files(folder, {"c/d.py": OAUTH.encode()}, parents=(second,))

    assert looked(folder, first) == [f"{VALUE} a.txt"]
    assert looked(folder, second, first) == []
    assert looked(folder, third, first) == [f"{OAUTH} c/d.py"]
    assert looked(folder, third, head=second) == [f"{OAUTH} c/d.py"]


def test_what_was_removed_again_within_a_push_is_found(folder: Path) -> None:
    first = commit_files(folder, {"a.txt": b"x"})
    second = commit_files(folder, {"a.txt": VALUE.encode()}, parents=(first,))
    third = commit_files(folder, {"a.txt": b"x"}, parents=(second,))

    assert looked(folder, third, first) == [f"{VALUE} a.txt"]


def test_the_search_has_its_limits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks, "MOST_BYTES", 100)
    large = commit_files(folder, {"large.txt": VALUE.encode() + b" " * 100})
    binary = commit_files(folder, {"binary": VALUE.encode() + b"\0" * 10})
    many = commit_files(folder, {"a.txt": b"x", "b.txt": VALUE.encode()})
    assert (looked(folder, large), looked(folder, binary)) == ([], [])
    assert len(looked(folder, many)) == 1
    monkeypatch.setattr(leaks, "MOST_FILES", 1)
    assert looked(folder, many) == []
    child = commit_files(folder, {"c.txt": b"y"}, parents=(many,))
    monkeypatch.setattr(leaks, "MOST_FILES", 9)
    monkeypatch.setattr(leaks, "MOST_COMMITS", 1)
    assert looked(folder, child) == []


def test_a_repository_or_a_commit_that_is_gone_holds_nothing(folder: Path, tmp_path: Path) -> None:
    assert looked(folder, "f" * 40) == []
    assert looked(tmp_path / "gone.git", "f" * 40) == []


async def test_the_owner_of_a_credential_in_a_public_repository_is_told(
    client: httpx2.AsyncClient, database: Database, ada: Headers, mails: MailRecorder
) -> None:
    value = await a_token(database, "bob")
    repo_id = await a_repo(client, ada, "ada/engine")
    commit = await a_push(database, repo_id, {"src/run.py": f"login('{value}')".encode()})
    await drain(database)
    await a_push(database, repo_id, {"src/run.py": f"login('{value}') # again".encode()})
    await drain(database)

    messages = await mails.received(database, "bob")
    assert messages == [
        ReceivedMessage(
            kind="credential-detected",
            title="Your token called bob's token can be read in the model ada/engine",
            body=f"The token hf_…{value[-4:]} stands in the file src/run.py of the model "
            f"ada/engine, in the commit {commit[:12]}. Everybody can read it there.\n\n"
            "It still works. Revoke it now, and create another one if you need it: to remove it "
            "from the file is not enough, because the commit stays.",
            mail=PreferenceKey.secret_detected,
        )
    ]
    assert value not in f"{messages}"
    assert await mails.received(database, "ada") == []


async def test_nothing_is_told_of_what_is_private_or_does_not_work(
    client: httpx2.AsyncClient, database: Database, ada: Headers, mails: MailRecorder
) -> None:
    value, revoked = await a_token(database, "bob"), await a_token(database, "bob")
    await client.post("/api/credentials/revoke", json={"credentials": [revoked]})
    await drain(database)
    public = await a_repo(client, ada, "ada/engine")
    private = await a_repo(client, ada, "ada/secret", private=True)
    await a_push(database, private, {"a.txt": value.encode()})
    await a_push(database, public, {"a.txt": f"{revoked} {VALUE}".encode()})
    await drain(database)

    assert await mails.titles(database, "bob", "credential-detected") == []


async def test_the_event_holds_everything_but_the_value(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    value = await a_token(database, "bob")
    repo_id = await a_repo(client, ada, "ada/engine")
    commit = await a_push(database, repo_id, {"a.txt": value.encode()})
    moved = UpdatedRef(ref="refs/heads/main", old_sha=None, new_sha=commit)
    wanted = LeakSearch(repo_id=repo_id, updated_refs=(moved,), head_sha=commit)
    await leaks.search_repo(database, wanted)

    (event,) = await published_events(database, SecretDetected)
    bob = await a_user(database, "bob")
    assert {name: event[name] for name in ("user_id", "name", "hint", "path", "commit")} == {
        "user_id": bob.id,
        "name": "bob's token",
        "hint": f"hf_…{value[-4:]}",
        "path": "a.txt",
        "commit": commit,
    }
    assert event["repo"]["name"] == "ada/engine"
    assert value not in f"{event}"
