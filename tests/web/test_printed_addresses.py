"""No printed link is dead: what clients, mails, webhooks and the API print opens in a browser."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from email.message import EmailMessage
from html import unescape
from typing import Any
from urllib.parse import urlsplit

import httpx2
import msgspec
from huggingface_hub import Discussion, JobInfo
from huggingface_hub._buckets import BucketUrl
from huggingface_hub.hf_api import RepoUrl
from huggingface_hub.utils._hf_uris import parse_hf_uri

from community.public_threads import KINDS, a_comment, a_thread
from hublet.community.threads.records import ThreadKind
from hublet.community.threads.store import list_comments, list_newest
from hublet.core import clock
from hublet.core.database import Database
from hublet.notifications.mail import digest
from hublet.notifications.mail.activity import find_location
from hublet.notifications.mail.links import unsubscribe_url
from hublet.notifications.mail.sender import SETTINGS_PATH
from hublet.notifications.preferences.switches import PreferenceKey
from hublet.webhooks.triggers.payload import TRIGGER_EVENTS, trigger_of
from login.login_pages import a_person, log_in
from mail_servers import texts_of
from notifications.mailbox import letters, set_mail
from people import Headers, sign_in
from repos.commits import file, header, ndjson
from web.parsed_pages import HTML
from workers import drain

HUB = "http://hub.test"

# Pages that are not built yet, by a pattern of their paths. Whoever builds one takes its line away.
EXPECTED_LATER: dict[str, str] = {}
# Addresses for programs and pictures, not for people.
_NO_PAGES = re.compile(r"/(api|avatars|cas|uploads|oauth)/.*|.*/(resolve|info)/.*")


def addresses_in(answer: Any) -> Iterator[str]:
    """Yield what stands in JSON and is an address of this hub."""
    if isinstance(answer, Mapping):
        answer = list(answer.values())
    if isinstance(answer, list | tuple):
        for part in answer:
            yield from addresses_in(part)
    elif isinstance(answer, str) and answer.startswith(f"{HUB}/"):
        yield answer


async def fill(client: httpx2.AsyncClient, ada: Headers) -> list[Any]:
    """Let ada use the API, as a client would, and return all that it answered."""
    answers = []

    async def post(path: str, **options: Any) -> Any:
        response = await client.post(path, headers=ada, **options)
        assert response.status_code == 200, response.text
        answers.append(response.json())
        return response.json()

    for kind in ("model", "dataset", "space", "kernel", "bucket", "container"):
        space = {"sdk": "static"} if kind == "space" else {}
        await post("/api/repos/create", json={"name": "engine", "type": kind} | space)
    notes = "/api/buckets/ada/engine/files/notes/a b.txt"
    await client.put(notes, headers=ada, content=b"text")
    for query in ("", "?create_pr=1"):
        commit = ndjson(header(), file(f"src/train{query[:1]}.py", "import torch"))
        await post(f"/api/models/ada/engine/commit/main{query}", content=commit)
    for kind in ("model", "dataset"):
        words = {"title": "Does it run?", "description": "On one card?"}
        await post(f"/api/{kind}s/ada/engine/discussions", json=words)
    await post("/api/models/ada/engine/discussions/2/comment", json={"comment": "Yes."})
    return answers


async def printed_by_the_client(client: httpx2.AsyncClient, ada: Headers) -> Iterator[str]:
    """Return the addresses that the public client makes by itself, as its source has them."""
    started = await client.post(
        "/api/jobs/ada",
        headers=ada,
        json={
            "dockerImage": "local",
            "command": ["true"],
            "flavor": "cpu-basic",
            "environment": {},
        },
    )
    collection = await client.post(
        "/api/collections", headers=ada, json={"title": "Wheels", "namespace": "ada"}
    )
    job = started.json()
    # The client itself is told the type, too (decision 0028).
    job["owner"]["type"] = "user"
    thread = Discussion(
        title="Does it run?",
        status="open",
        num=1,
        repo_id="ada/engine",
        repo_type="dataset",
        author="ada",
        is_pull_request=False,
        created_at=datetime(2026, 11, 17, tzinfo=UTC),
        endpoint=HUB,
    )
    uris = (
        "ada/engine",
        "ada/engine@main",
        "ada/engine@refs/pr/1",
        "ada/engine/src/train.py",
        "ada/engine@refs/pr/1/src/train.py",
        "datasets/ada/engine",
        "datasets/ada/engine@main",
        "spaces/ada/engine",
        "kernels/ada/engine",
        "buckets/ada/engine",
        "buckets/ada/engine/notes",
        "buckets/ada/engine/notes/a b.txt",
    )
    return iter(
        [
            *(RepoUrl(f"{HUB}/{kind}ada/engine", endpoint=HUB) for kind in ("", "datasets/")),
            BucketUrl(f"{HUB}/buckets/ada/engine", endpoint=HUB).url,
            JobInfo(**job, endpoint=HUB).url,
            f"{thread.url}#{'0' * 24}",
            *(parse_hf_uri(f"hf://{uri}").to_url(endpoint=HUB) for uri in uris),
            f"{HUB}/collections/{collection.json()['slug']}",
            *(f"{HUB}/settings/{page}" for page in ("tokens", "keys", "webhooks")),
            f"{HUB}/device",
        ]
    )


async def printed_by_mails(client: httpx2.AsyncClient, database: Database) -> Iterator[str]:
    """Return the addresses of mails; those of papers, posts and blogs as the mails write them."""
    user = await a_person(database)
    ada, bob = await sign_in(database, "ada"), await sign_in(database, "bob")
    for kind in KINDS:
        await a_comment(client, bob, await a_thread(client, ada, kind))
    async with database.read() as conn:
        threads = [
            each
            for kind in (ThreadKind.paper, ThreadKind.post, ThreadKind.blog)
            for each in await list_newest(conn, kind, owner="", limit=5)
        ]
        places = [await find_location(conn, each, reader_id=user.id) for each in threads]
        comments = [(await list_comments(conn, each.id))[0].id for each in threads]
    found = [
        f"{place.url}#{anchor}" for place, anchor in zip(places, comments, strict=True) if place
    ]
    assert len(found) == len(KINDS)
    switch = next(iter(PreferenceKey))
    return iter(
        [
            f"{HUB}{SETTINGS_PATH}",
            unsubscribe_url(database.hub, user.id, switch),
            f"{HUB}/ada/engine/discussions/2",
            *found,
        ]
    )


async def printed_by_webhooks(database: Database) -> Iterator[str]:
    kinds = {event.kind: event for event in TRIGGER_EVENTS}
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT kind, body FROM outbox")
    events = [
        msgspec.json.decode(row["body"], type=kinds[row["kind"]])
        for row in rows
        if row["kind"] in kinds
    ]
    triggers = [trigger_of(event, HUB) for event in events]
    return addresses_in([json.loads(each.payload) for each in triggers if each is not None])


async def test_every_printed_address_opens_in_a_browser(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    ada = await sign_in(database, "ada")
    found = {
        *addresses_in(await fill(client, ada)),
        *await printed_by_the_client(client, ada),
        *await printed_by_mails(client, database),
        *await printed_by_webhooks(database),
        f"{HUB}/ada",
    }
    await log_in(client)

    wrong = {}
    reached = set()
    for url in sorted(found):
        path = urlsplit(url).path
        if _NO_PAGES.fullmatch(path):
            continue
        later = next(
            (what for what, each in EXPECTED_LATER.items() if re.fullmatch(each, path)), ""
        )
        reached.add(later)
        response = await client.get(url.partition("#")[0], headers=HTML)
        anchor = url.partition("#")[2]
        if path.startswith(("/papers/", "/posts/", "/blog/")):
            assert f'id="{anchor}"' in response.text, url
        is_page = response.headers.get("content-type", "").startswith("text/html")
        is_login = response.headers.get("location", "").startswith("/login")
        if not (is_login or (is_page and response.status_code == (404 if later else 200))):
            wrong[path] = (response.status_code, response.headers.get("content-type"), later)
    assert wrong == {}
    assert reached == {*EXPECTED_LATER, ""}


def addresses_of(letter: EmailMessage) -> set[str]:
    """Return the addresses of a mail: in its text, in its HTML, and for its own buttons."""
    text, html = texts_of(letter)
    header = str(letter.get("List-Unsubscribe", ""))
    return set(re.findall(rf"{HUB}/[^\s\"<>]+", f"{text} {unescape(html)} {header}"))


async def send_all_kinds_of_mails(client: httpx2.AsyncClient, database: Database) -> None:
    """Let something happen for each kind of mail with a link, all of it for ada."""
    ada, bob = await sign_in(database, "ada"), await sign_in(database, "bob")
    wants = {"notifications": {"daily_papers_digest": True}}
    await client.patch("/api/settings/notifications", headers=ada, json=wants)
    await client.post("/api/settings/emails", headers=ada, json={"email": "ada@navy.example"})
    for name, owner in (("engine", ada), ("vault", bob)):
        await client.post("/api/repos/create", headers=owner, json={"name": name})
    commit = ndjson(header(), file("train.py", "import torch"))
    await client.post("/api/models/bob/vault/commit/main", headers=bob, content=commit)
    await client.put("/api/models/ada/engine/settings", headers=ada, json={"gated": "manual"})
    await client.put("/api/models/bob/vault/settings", headers=bob, json={"gated": "manual"})
    info = (await client.get("/api/models/bob/vault", headers=ada)).json()
    watched = {"add": [{"type": "repo", "id": info["_id"]}]}
    await client.patch("/api/settings/watch", headers=ada, json=watched)
    words = {"title": "Does it run?", "description": "On one card, @ada?"}
    await client.post("/api/models/bob/vault/discussions", headers=bob, json=words)
    for kind in KINDS:
        await a_comment(client, bob, await a_thread(client, ada, kind))
    await client.post("/api/models/bob/vault/tag/main", headers=bob, json={"tag": "v1"})
    await client.post("/ada/engine/ask-access", headers=bob)
    await client.post("/bob/vault/ask-access", headers=ada)
    handled = {"status": "accepted", "user": "ada"}
    path = "/api/models/bob/vault/user-access-request/handle"
    await client.post(path, headers=bob, json=handled)
    await drain(database)
    day = timedelta(days=1)
    tomorrow = datetime.combine(clock.now().date() + day, time(8, 1), UTC)
    async with database.transaction() as conn:
        await digest.schedule(conn)
    clock.move(tomorrow - clock.now())
    await drain(database)


async def test_every_link_of_every_mail_opens_in_a_browser(
    client: httpx2.AsyncClient, database: Database
) -> None:
    set_mail(database)
    await a_person(database, email="ada@example.com")
    await send_all_kinds_of_mails(client, database)
    sent = letters(database, "ada")
    found = set().union(*map(addresses_of, sent))
    places = {urlsplit(url).path.split("/")[1] for url in found}
    assert places >= {"ada", "bob", "papers", "posts", "blog", "settings", "unsubscribe"}
    assert places >= {"verify-email"}
    assert f"{HUB}/bob/vault/tree/v1" in found
    await log_in(client)

    wrong = {}
    for url in sorted(found):
        address, _, anchor = url.partition("#")
        response = await client.get(address, headers=HTML)
        is_page = response.headers["content-type"].startswith("text/html")
        leads_there = not anchor or f'id="{anchor}"' in response.text
        if not (is_page and leads_there and response.status_code == 200):
            wrong[url] = response.status_code
    assert wrong == {}
