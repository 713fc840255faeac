"""What a guest starts in a job, with the variables that the job itself has."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field

from hublet.core.database import Database
from hublet.core.light_dataclasses import dataclass
from hublet.jobs import hardware, service
from hublet.jobs.environment import environment_of
from hublet.jobs.runners import process
from hublet.jobs.runners.bubblewrap import HOME
from hublet.jobs.runners.entering.surroundings import variables_of
from hublet.jobs.runners.entering.visits import CannotEnter, Terminal, Visit, Wish, enter
from hublet.jobs.runners.leftovers import MARK
from hublet.jobs.runners.long_variables import MAX_BYTES
from hublet.jobs.runners.records import Inside
from hublet.jobs.ssh import names
from hublet.jobs.ssh.records import Guest, Running

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Of what a client sends along; the rest could only surprise the programs of the job.
_WELCOME = re.compile(r"LANG|LC_[A-Z]+|COLORTERM|TERM|TZ")
# Clients that name links the other way round than the draft of SFTP.
_TARGET_FIRST = ("OpenSSH", "paramiko")

# Takes the name of a runner and what that calls the attempt.
Way = Callable[[str, str], Awaitable[Inside | None]]

ELSEWHERE = (
    "The job is not running on the machine that answers here, or it has just ended: SSH goes "
    "through the hub's process on the machine of the job."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a client wants: a command, or without one a shell; or files."""

    command: str | None = None
    sftp: bool = False
    # What the client calls itself.
    client: str = ""
    terminal: Terminal | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visiting:
    """Opens the jobs of one hub to those who were let in."""

    database: Database
    way: Way

    async def inside(self, running: Running) -> Inside:
        found = await self.way(running.runner, running.handle)
        if found is None:
            raise CannotEnter(ELSEWHERE)
        return found

    async def addresses(self, running: Running, inside: Inside, name: str) -> list[str]:
        """Return who has a name in the network group of a job. Raises CannotEnter."""
        data_dir = self.database.hub.settings.database.data_dir
        return await names.find_addresses(running, inside, name, data_dir=data_dir)

    async def begin(self, guest: Guest, asked: Asked) -> Visit:
        """Start what is asked for. Raises CannotEnter."""
        inside = await self.inside(guest.running)
        is_plain = guest.running.runner == process.NAME
        environment = await self._environment(guest.running, inside, is_plain=is_plain)
        environment |= {n: v for n, v in asked.variables.items() if _WELCOME.fullmatch(n)}
        wish = Wish(
            argv=() if asked.command is None else ("/bin/sh", "-c", asked.command),
            sftp=asked.sftp,
            target_first=any(name in asked.client for name in _TARGET_FIRST),
            environment=environment,
            terminal=asked.terminal,
        )
        if inside.container is not None:
            return await _enter_container(inside.container, wish)
        return await enter(inside, wish, is_plain=is_plain)

    async def _environment(
        self, running: Running, inside: Inside, *, is_plain: bool
    ) -> dict[str, str]:
        found = await asyncio.to_thread(variables_of, inside, is_plain=is_plain)
        own = {"HOME": f"{running.handle}/home", MARK: running.handle}
        given = own if is_plain else {"HOME": HOME}
        if inside.container is not None:
            # The engine knows them, and tells them to everybody whom it lets in.
            return {}
        return {"PATH": _PATH} | given | found | await self._said(running) | _marked(given)

    async def _said(self, running: Running) -> dict[str, str]:
        """Return what the hub itself told the job; what is too long for a variable is a file."""
        settings = self.database.hub.settings
        size = hardware.offered(settings).get(running.job.spec.flavor)
        if size is None:
            return {}
        async with self.database.read() as conn:
            secrets = await service.secrets_of(conn, running.job)
        said = environment_of(running.job, size, secrets=secrets, base_url=settings.base_url)
        return {n: v for n, v in said.items() if len(f"{n}={v}".encode()) <= MAX_BYTES}


def _marked(given: Mapping[str, str]) -> dict[str, str]:
    """Return what tells whose a plain process is, which nothing may overwrite."""
    return {name: value for name, value in given.items() if name == MARK}


async def _enter_container(container: str, wish: Wish) -> Visit:
    # Its library is an extra, and costs a while to load.
    from hublet.jobs.runners.entering.containers import enter_container  # noqa: PLC0415 - as above

    return await enter_container(container, wish)
