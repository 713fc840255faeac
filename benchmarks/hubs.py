"""Real hubs with somebody in them: opened in this process, or served by another."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.processes import COMMANDS, Child, free_port, running, wait_until_it_answers
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, OrganizationPlan
from hublet.accounts.users import service as accounts
from hublet.core.config import Settings, load
from hublet.core.database import Database
from hublet.core.startup import open_hub
from hublet.first_start import prepare
from hublet.tokens import service as tokens
from hublet.tokens.records import TokenRole

Engine = Literal["SQLite", "PostgreSQL"]
ENGINES: tuple[Engine, ...] = ("SQLite", "PostgreSQL")

BASE_URL = "http://hub.test"
_NO_LIMIT = "1000000000"
# Nothing may be refused: a refusal is cheap, and would be counted as speed.
UNLIMITED = {
    "HUBLET_LIMITS_ANONYMOUS_REQUESTS": _NO_LIMIT,
    "HUBLET_LIMITS_AUTHENTICATED_REQUESTS": _NO_LIMIT,
    "HUBLET_LIMITS_REVOKE_REQUESTS_PER_HOUR": _NO_LIMIT,
    "HUBLET_SERVER_CONNECTIONS_PER_ADDRESS": _NO_LIMIT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a hub keeps its data."""

    folder: Path
    database_url: str | None

    @property
    def data_dir(self) -> Path:
        return self.folder / "data"

    @property
    def flags(self) -> list[str]:
        url = [] if self.database_url is None else ["--database-url", self.database_url]
        return ["--data-dir", str(self.data_dir), *url]

    def settings(self, **overrides: object) -> Settings:
        """Return the settings of this hub; overrides are named with two underscores."""
        given = {key.replace("__", "."): value for key, value in overrides.items()}
        where = {"database.data_dir": self.data_dir, "database.url": self.database_url}
        return load(where | {"server.base_url": BASE_URL} | given, environ={})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedHub:
    child: Child
    port: int


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Database]:
    async with open_hub(settings) as database:
        await prepare(database)
        yield database


async def a_token(database: Database) -> str:
    """Return the token of a user with an address and two organizations."""
    async with database.transaction() as conn:
        ada = await accounts.create_user(conn, "ada", email="ada@hub.test")
        for name, plan in (
            ("engines", OrganizationPlan.free),
            ("analysts", OrganizationPlan.enterprise),
        ):
            await organizations.create(conn, OPERATOR, name, plan=plan, owner=ada)
        _, value = await tokens.issue(conn, user_id=ada.id, name="benchmarks", role=TokenRole.write)
    return value


async def populate(settings: Settings) -> str:
    async with opened(settings) as database:
        return await a_token(database)


@contextmanager
def starting(
    site: Site, *, core: int | None = None, port: int | None = None, base_url: str = BASE_URL
) -> Iterator[ServedHub]:
    """Start `hublet serve`; its access log goes to a file."""
    port = port or free_port()
    command = [str(COMMANDS / "hublet"), "serve", "--port", str(port), "--base-url", base_url]
    output = site.folder / "hub.log"
    with running([*command, *site.flags], output=output, core=core, variables=UNLIMITED) as child:
        yield ServedHub(child=child, port=port)


@contextmanager
def serving(
    site: Site, *, core: int | None = None, port: int | None = None, base_url: str = BASE_URL
) -> Iterator[ServedHub]:
    with starting(site, core=core, port=port, base_url=base_url) as hub:
        wait_until_it_answers(hub.child, hub.port, "/healthz")
        yield hub
