"""SCIM with 10,000 users: provisioning, pages, a look-up, and the end of a user's access."""

import time
from collections.abc import Iterator
from http.client import HTTPConnection
from statistics import median
from typing import Any

import msgspec

from benchmarks.figures import Goal, Row, Spoiled
from benchmarks.hubs import ENGINES, Engine, Site, opened, serving
from benchmarks.workbench import Workbench
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, OrganizationPlan
from hublet.accounts.users import service as accounts
from hublet.cli.local_hub import run_loop
from hublet.tokens import service as tokens
from hublet.tokens.records import TokenRole

USERS = 10_000
_PAGE = 100
_SAMPLES = 20
_PATH = "/api/organizations/acme/scim-provisioning/v2/Users"
_SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:User"
_PATCH = {
    "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
    "Operations": [{"op": "replace", "value": {"active": False}}],
}
_FLAT = Goal(floor=1.5, aim=1.1, more_is_better=False, of="ratio")
_LOOK_UP = Goal(aim=10, more_is_better=False, of="ours")
_DEAD = Goal(floor=1000, aim=100, more_is_better=False, of="ours")


class _Provider:
    """An identity provider: one connection, one request after the other."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)
        self._token = token

    def ask(self, method: str, path: str, body: Any = None, *, token: str | None = None) -> Any:
        headers = {
            "Authorization": f"Bearer {token or self._token}",
            "Content-Type": "application/scim+json",
        }
        sent = None if body is None else msgspec.json.encode(body)
        self._connection.request(method, path, body=sent, headers=headers)
        response = self._connection.getresponse()
        content = response.read()
        return response.status, msgspec.json.decode(content) if content else None

    def add(self, number: int) -> str:
        body = {
            "schemas": [_SCHEMA],
            "userName": f"user-{number}",
            "externalId": f"00u{number}",
            "name": {"givenName": "User", "familyName": str(number)},
            "emails": [{"value": f"user-{number}@corp.test", "primary": True}],
        }
        status, user = self.ask("POST", _PATH, body)
        if status != 201:
            raise Spoiled(f"User {number} was answered with {status}.")
        created: str = user["id"]
        return created

    def milliseconds(self, path: str) -> float:
        start = time.perf_counter()
        status, _ = self.ask("GET", path)
        if status != 200:
            raise Spoiled(f"{path} was answered with {status}.")
        return (time.perf_counter() - start) * 1e3


def measure(bench: Workbench) -> Iterator[Row]:
    """10,000 SCIM users: provisioning, the first and the last page, a look-up, the end of one."""
    users = max(2 * _PAGE, round(USERS * bench.share))
    for engine in ENGINES:
        site = bench.site(engine)
        token = run_loop(_furnish(site))
        with serving(site, core=bench.cores.server) as hub:
            provider = _Provider(hub.port, token)
            yield from _rows(provider, site, engine, users)


def _rows(provider: _Provider, site: Site, engine: Engine, users: int) -> Iterator[Row]:
    start = time.perf_counter()
    ids = [provider.add(number) for number in range(users)]
    yield Row(
        subject=f"SCIM, users provisioned one by one, {engine}",
        unit="/s",
        ours=users / (time.perf_counter() - start),
    )
    first = f"{_PATH}?count={_PAGE}"
    last = f"{first}&startIndex={users - _PAGE + 1}"
    pairs = [(provider.milliseconds(last), provider.milliseconds(first)) for _ in range(_SAMPLES)]
    yield Row(
        subject=f"SCIM, last of {users // _PAGE} pages, {engine}",
        unit="ms",
        ours=median(late for late, _ in pairs),
        other=median(early for _, early in pairs),
        other_is="the first page",
        ratios=tuple(late / early for late, early in pairs),
        goal=_FLAT,
    )
    look_up = f"{_PATH}?filter=userName%20eq%20%22USER-{users // 2}%22"
    yield Row(
        subject=f"SCIM, look-up by userName among {users:,}, {engine}",
        unit="ms",
        ours=median(provider.milliseconds(look_up) for _ in range(_SAMPLES)),
        goal=_LOOK_UP,
    )
    waits = [_until_dead(provider, site, ids[n], f"user-{n}") for n in range(_SAMPLES)]
    yield Row(
        subject=f"SCIM, from `active: false` to a dead token, worst, {engine}",
        unit="ms",
        ours=max(waits),
        goal=_DEAD,
        note="from the request on, so the change itself is part of it",
    )


def _until_dead(provider: _Provider, site: Site, scim_id: str, name: str) -> float:
    """Return how long after the request was sent the user's token worked for the last time."""
    token = run_loop(_a_token(site, name))
    if provider.ask("GET", "/api/whoami-v2", token=token)[0] != 200:
        raise Spoiled("The token did not work before.")
    start = time.perf_counter()
    if provider.ask("PATCH", f"{_PATH}/{scim_id}", _PATCH)[0] != 200:
        raise Spoiled("The user was not deactivated.")
    while provider.ask("GET", "/api/whoami-v2", token=token)[0] == 200:
        pass
    return (time.perf_counter() - start) * 1e3


async def _furnish(site: Site) -> str:
    async with opened(site.settings()) as database, database.transaction() as conn:
        olga = await accounts.create_user(conn, "olga")
        await organizations.create(
            conn, OPERATOR, "acme", plan=OrganizationPlan.enterprise_plus, owner=olga
        )
        _, value = await tokens.issue(conn, user_id=olga.id, name="scim", role=TokenRole.write)
    return value


async def _a_token(site: Site, name: str) -> str:
    async with opened(site.settings()) as database, database.transaction() as conn:
        user = await accounts.get_user(conn, name)
        _, value = await tokens.issue(conn, user_id=user.id, name="own", role=TokenRole.write)
    return value
