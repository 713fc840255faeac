"""Rules of ports: who may reach one, when, and how a browser exchanges a code for a cookie."""

import string
from collections.abc import Sequence

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader
from hublet.core.hub import Hub
from hublet.core.ids import random_text
from hublet.gateway import store
from hublet.gateway.errors import CodeExpired, JobEnded, JobNotStarted, PortNotExposed
from hublet.gateway.records import JobPort, ReachableJob
from hublet.jobs import service as jobs
from hublet.jobs.access import get_access_of_creator, get_creator
from hublet.jobs.errors import CreatorGone, JobNotFound, NamespaceNotFound
from hublet.jobs.records import Stage
from hublet.login.records import Session
from hublet.tokens.records import Caller, Scope

COOKIE_SECONDS = 4 * 3600
_CODE_SECONDS = 60
_SECOND = 1_000_000
_DIGEST_KIND = "job pass"
# Interface 2.2: a token that reads the namespace is enough to reach its jobs.
_READ_SCOPES = (Scope.read_repos, Scope.jobs)
_VALUE_LENGTH = 43
_VALUE_ALPHABET = string.ascii_letters + string.digits


async def check_reader(
    conn: Reader, caller: Caller, found: ReachableJob | None, job_id: str
) -> None:
    """Refuse who may not see the job; they do not even hear whether there is one."""
    if found is None:
        raise JobNotFound(job_id)
    try:
        access = await get_access_of_creator(conn, caller, found.job.owner_id)
        await jobs.get(conn, access, job_id)
    except NamespaceNotFound:
        raise JobNotFound(job_id) from None
    if not any(caller.may(scope, on=found.job.owner_id) for scope in _READ_SCOPES):
        raise JobNotFound(job_id)


def check_state(found: ReachableJob, port: int) -> None:
    """Refuse a port that is not exposed, and a job that has not begun or is over."""
    if not found.exposes(port):
        raise PortNotExposed(found.job.id, port)
    if found.job.stage.is_terminal:
        raise JobEnded(found.job.id)
    if found.job.stage is Stage.scheduling or found.handle is None:
        raise JobNotStarted(found.job.id)


def new_secret() -> str:
    """Return something that nobody can guess, for a code, a cookie or the state of a browser."""
    return random_text(_VALUE_LENGTH, _VALUE_ALPHABET)


async def issue_code(conn: Connection, session: Session, target: JobPort, *, state: str) -> str:
    """Return a code that lets this browser in once, if its person may see the job."""
    found = await store.find_reachable(conn, target.job_id)
    try:
        caller = await get_creator(conn, session.user_id)
    except CreatorGone:
        raise JobNotFound(target.job_id) from None
    await check_reader(conn, caller, found, target.job_id)
    code = new_secret()
    await store.add_code(
        conn,
        target,
        digest=conn.hub.keys.digest(_DIGEST_KIND, code).hex(),
        state_digest=conn.hub.keys.digest(_DIGEST_KIND, state).hex(),
        session_id=session.id,
        until=micros() + _CODE_SECONDS * _SECOND,
    )
    return code


async def exchange_code(conn: Connection, target: JobPort, *, code: str, state: str) -> str:
    """Use up a code; return the value of the cookie that it is exchanged for."""
    session_id = await store.take_code(
        conn,
        target,
        digests=_digests(conn.hub, code),
        state_digests=_digests(conn.hub, state),
    )
    if session_id is None:
        raise CodeExpired
    value = new_secret()
    digest = conn.hub.keys.digest(_DIGEST_KIND, value).hex()
    until = micros() + COOKIE_SECONDS * _SECOND
    await store.add_cookie(conn, target, digest=digest, session_id=session_id, until=until)
    return value


async def find_cookie_owner(conn: Reader, target: JobPort, cookie: str) -> Caller | None:
    """Return the person whose browser has this cookie, with the rights they have now."""
    found = await store.find_pass(conn, target, digests=_digests(conn.hub, cookie))
    return None if found is None else await get_creator(conn, found.user_id)


def _digests(hub: Hub, value: str) -> Sequence[str]:
    return [digest.hex() for digest in hub.keys.digests(_DIGEST_KIND, value)]
