"""After a day in the life of a hub, neither its database nor its log holds a usable secret."""

import asyncio
import base64
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import httpx2

from acceptance.secret_search import find_secrets
from hublet.cli.serving import FIRST_START_FILE
from hublet.core import outbox
from hublet.core.clock import micros
from hublet.core.startup import load_keys, open_hub
from hublet.tokens.format import TokenKind, new_credential
from hublet.tokens.service import digests_of
from patience import SOON_SECONDS
from processes import Place, Server, run_hublet, serving, wait_until

IN_THE_LOG = (b'"request"', b"unexpected error", b"task failed", b"worker started")
_FIVE_MINUTES = 300_000_000
LOUD = {
    "HUBLET_LOGS_LEVEL": "debug",
    "HUBLET_LIMITS_REVOKE_REQUESTS_PER_HOUR": "100000",
    "HUBLET_JOBS_RUNNER": "process",
}


def test_no_secret_is_found_anywhere_but_where_the_first_start_told_it(place: Place) -> None:
    with serving(place, variables=LOUD) as server:
        secrets = _use(server, place)
        # While the hub runs, SQLite's log of changes is there beside its file.
        database = _dump(place) | _files(place.data_dir)
    first = database.pop(FIRST_START_FILE)
    log, told = server.process.stderr.read_bytes(), server.process.stdout.read_bytes()

    assert find_secrets(secrets, database) == []
    assert find_secrets(secrets, {"the log": log}) == []
    assert told.count(b"\n") == 1
    assert find_secrets(secrets, {"standard output": told}) == []
    assert {trace.partition(",")[0] for trace in find_secrets(secrets, {"its file": first})} == {
        "the first password",
        "the first token",
    }
    # The search would mean nothing if it looked at nothing.
    assert [word for word in IN_THE_LOG if word not in log] == []
    assert [name for name in _digests_not_in(database, place, secrets) if "token" in name] == []


def _use(server: Server, place: Place) -> dict[str, str]:
    """Spend a day with the hub, and return every secret that had a part in it."""
    secrets = {"the first password": str(server.password), "the first token": str(server.token)}
    with server.client(server.token) as admin:
        secrets |= _use_passwords(place, admin)
        secrets |= _use_tokens(place, admin)
        secrets |= _use_webhooks(admin)
    secrets |= {"a wrong guess": new_credential("hf_", TokenKind.access)}
    _provoke_errors(server, secrets)
    _break_the_database(place, server, secrets)
    _revoke(server, secrets)
    wait_until(lambda: _all_is_done(place), seconds=3 * SOON_SECONDS)
    return secrets


def _use_passwords(place: Place, admin: httpx2.Client) -> dict[str, str]:
    """Set passwords in every way there is; the last one of ada's is the one in use."""
    secrets = {
        name: f"{name.replace(' ', '-')}-8wqd"
        for name in ("ada's first password", "ada's second password", "ada's third password")
    } | {"grace's password": "k3nv/8wqd+ypx2 hm7t"}
    first, second, third, grace = secrets.values()
    _ok(admin.post("/api/admin/users", json={"name": "ada", "password": first}))
    _ok(admin.put("/api/admin/users/ada/password", json={"password": second}))
    token = _value(admin.post("/api/admin/users/ada/tokens", json={"name": "t", "role": "write"}))
    change = {"currentPassword": second, "newPassword": third}
    own = {"Authorization": f"Bearer {token}"}
    _ok(admin.put("/api/settings/password", json=change, headers=own))
    _command(place, "user", "add", "grace", "--password", grace)
    return secrets | {"ada's token": token}


def _use_tokens(place: Place, admin: httpx2.Client) -> dict[str, str]:
    """Create tokens of each kind over HTTP and on the command line, and use them all."""
    wanted: dict[str, dict[str, object]] = {
        "a read token": {"role": "read"},
        "a write token": {"role": "write"},
        "a fine-grained token": {"role": "fineGrained", "scopes": ["read-repos", "webhooks"]},
        "a token that expires": {"role": "read", "expiresAt": "2999-01-01T00:00:00Z"},
        "an imported token": {"role": "read", "value": "brought/along+by=a-test"},
    }
    path = "/api/admin/users/ada/tokens"
    secrets = {
        name: _value(admin.post(path, json={"name": name, **body})) for name, body in wanted.items()
    }
    secrets |= {
        "a token of the command line": _command(place, "token", "create", "ada"),
        "a token it imported": _command(place, "token", "create", "ada", "--value", "hf_by-hand"),
    }
    for value in secrets.values():
        _ok(admin.get("/api/whoami-v2", headers={"Authorization": f"Bearer {value}"}))
    return secrets


def _use_webhooks(admin: httpx2.Client) -> dict[str, str]:
    """Give webhooks secrets in every way there is; the second one is in use, the first still."""
    names = ("a webhook's first secret", "a webhook's second secret", "a source's", "a job's")
    secrets = {name: f"{name.replace(' ', '-')}-k4zt" for name in names}
    first, second, of_source, of_job = secrets.values()
    path = "/api/settings/webhooks"
    body = {"watched": [{"type": "user", "name": "ada"}], "domains": ["repo"]}
    name = admin.get("/api/whoami-v2").json()["name"]
    job = {"dockerImage": "ubuntu", "flavor": "cpu-basic", "secrets": {"KEY": of_job}}
    ran = admin.post(f"/api/jobs/{name}", json=job)
    _ok(ran)
    source = {"jobSourceId": ran.json()["id"], "secrets": {"KEY": of_source}, "secret": first}
    created = admin.post(path, json=body | source)
    _ok(created)
    _ok(admin.post(path, json=body | {"job": job}))
    changed = f"{path}/{created.json()['webhook']['id']}"
    _ok(admin.post(changed, json={"watched": [], "secret": second}))
    for wrong in ({"secret": [second]}, {"secrets": {of_source: of_source}, "url": of_job}):
        assert admin.post(changed, json=wrong).status_code == 400
    return secrets


def _ok(answer: httpx2.Response) -> None:
    assert answer.status_code == 200, answer.text


def _value(answer: httpx2.Response) -> str:
    _ok(answer)
    value: str = answer.json()["value"]
    return value


def _command(place: Place, *arguments: str) -> str:
    ended = run_hublet(*arguments, *place.flags, folder=place.folder)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def _provoke_errors(server: Server, secrets: Mapping[str, str]) -> None:
    """Send each secret where it does not belong."""
    statuses: set[int] = set()
    with server.client() as client:
        for secret in secrets.values():
            statuses |= {client.send(each).status_code for each in _wrong_requests(client, secret)}
    assert statuses == {400, 401, 404, 405, 413, 501}


def _wrong_requests(client: httpx2.Client, secret: str) -> list[httpx2.Request]:
    revoke, query = "/api/credentials/revoke", {"token": secret, "password": secret, "q": secret}
    basic = base64.b64encode(f"ada:{secret}".encode()).decode()
    build = client.build_request
    return [
        build("GET", "/api/whoami-v2", headers={"Authorization": f"Bearer {secret}x"}),
        build("GET", "/api/whoami-v2", headers={"Authorization": f"Basic {basic}"}),
        build("GET", "/api/whoami-v2", headers={"Authorization": secret, "User-Agent": secret}),
        build("GET", "/api/whoami-v2", headers={"Cookie": f"session={secret}"}, params=query),
        build("GET", "/api/nowhere", params=query),
        build("GET", f"/api/collections/{new_credential('hf_', TokenKind.access)}", params=query),
        build("GET", "/api/settings/billing/usage", params=query),
        build("GET", revoke, params=query),
        build("POST", revoke, json={"credentials": secret, secret: [secret]}),
        build("POST", revoke, json={"credentials": [[secret], {"value": secret}]}),
        build("POST", revoke, content=f'{{"credentials": ["{secret}"'.encode()),
        build("POST", revoke, content=secret.encode().ljust(1_100_000)),
        build("GET", "/api/whoami-v2", params={"q": f"{secret}\x00"}),
    ]


def _break_the_database(place: Place, server: Server, secrets: Mapping[str, str]) -> None:
    """Take a table away for a moment, so that requests and tasks fail where nobody expects it."""
    _execute(place, "ALTER TABLE tokens RENAME TO tokens_away")
    with server.client() as client:
        for secret in secrets.values():
            wrong = {"Authorization": f"Bearer {secret}y"}
            assert client.get("/api/whoami-v2", headers=wrong).status_code == 500
        _report(client, ["hf_unknown"])
    server.process.wait_for("task failed")
    _execute(place, "ALTER TABLE tokens_away RENAME TO tokens")


def _revoke(server: Server, secrets: Mapping[str, str]) -> None:
    with server.client() as client:
        _report(client, [value for name, value in secrets.items() if name != "the first token"])


def _report(client: httpx2.Client, values: list[str]) -> None:
    answer = client.post("/api/credentials/revoke", json={"credentials": values})
    assert (answer.status_code, answer.json()) == (202, {})


def _execute(place: Place, statement: str) -> None:
    async def execute() -> None:
        async with open_hub(place.settings) as database, database.transaction() as conn:
            await conn.execute(statement)

    asyncio.run(execute())


def _all_is_done(place: Place) -> bool:
    async def count() -> int:
        async with open_hub(place.settings) as database, database.read() as conn:
            # What is due later is always left to do: the next sweep, or to remove the log of a job
            # that was put into an object storage ten minutes ago.
            tasks: int = await conn.fetch_value(
                "SELECT count(*) FROM tasks WHERE parked_at IS NULL AND due_at < $1",
                micros() + _FIVE_MINUTES,
            )
            return await outbox.count_waiting(conn) + tasks

    return asyncio.run(count()) == 0


def _files(folder: Path) -> dict[str, bytes]:
    """Return every file of the data folder but the key ring, which is kept apart by its owner."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != "secret.keys")
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def _dump(place: Place) -> dict[str, bytes]:
    if place.database_url is not None:
        return asyncio.run(_dump_postgresql(place.database_url))
    with sqlite3.connect(f"file:{place.data_dir}/hub.db?mode=ro", uri=True) as raw:
        return {"the dump": "\n".join(raw.iterdump()).encode()}


async def _dump_postgresql(url: str) -> dict[str, bytes]:
    import asyncpg  # noqa: PLC0415 - only tests on PostgreSQL need it

    raw = await asyncpg.connect(url)
    tables = await raw.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    rows = {name: await raw.fetch(f'SELECT t::text FROM "{name}" t') for (name,) in tables}
    await raw.close()
    return {name: "\n".join(row[0] for row in found).encode() for name, found in rows.items()}


def _digests_not_in(
    database: Mapping[str, bytes], place: Place, secrets: Mapping[str, str]
) -> list[str]:
    keys, stored = load_keys(place.settings), b"".join(database.values())
    return [
        n for n, secret in secrets.items() if digests_of(keys, secret)[0].encode() not in stored
    ]
