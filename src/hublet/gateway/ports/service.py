"""Rules of ports: who may reach one, when, and how a browser exchanges a code for a cookie."""

import string
from collections.abc import Sequence

from hublet.accounts.organizations import security_store
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
    conn: Reader, caller: Caller, reachable: ReachableJob | None, job_id: str
) -> None:
    """Refuse a caller who may not see the job; the error is that of a job that does not exist."""
    if reachable is None:
        raise JobNotFound(job_id)
    try:
        access = await get_access_of_creator(conn, caller, reachable.job.owner_id)
        await jobs.get(conn, access, job_id)
    except NamespaceNotFound:
        raise JobNotFound(job_id) from None
    if not any(caller.may(scope, on=reachable.job.owner_id) for scope in _READ_SCOPES):
        raise JobNotFound(job_id)


def check_state(reachable: ReachableJob, port: int) -> None:
    """Refuse a port that is not exposed, and a job that has not started or is over."""
    if not reachable.exposes(port):
        raise PortNotExposed(reachable.job.id, port)
    if reachable.job.stage.is_terminal:
        raise JobEnded(reachable.job.id)
    if reachable.job.stage is Stage.scheduling or reachable.handle is None:
        raise JobNotStarted(reachable.job.id)


def new_secret() -> str:
    """Return a random secret, for a code, a cookie or the state of a browser."""
    return random_text(_VALUE_LENGTH, _VALUE_ALPHABET)


async def issue_code(conn: Connection, session: Session, target: JobPort, *, state: str) -> str:
    """Return a one-time code for this browser, if its user may see the job."""
    reachable = await store.find_reachable(conn, target.job_id)
    try:
        caller = await get_creator(conn, session.user_id)
    except CreatorGone:
        raise JobNotFound(target.job_id) from None
    await check_reader(conn, caller, reachable, target.job_id)
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
    """Consume a code; return the value of the cookie that it is exchanged for."""
    session_id = await store.consume_code(
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
    """Return the user of a browser's cookie, with the rights of now."""
    browser_pass = await store.find_pass(conn, target, digests=_digests(conn.hub, cookie))
    if browser_pass is None:
        return None
    owner = await get_creator(conn, browser_pass.user_id)
    return owner.with_limits(await security_store.limits_of_user(conn, browser_pass.user_id))


def _digests(hub: Hub, value: str) -> Sequence[str]:
    return [digest.hex() for digest in hub.keys.digests(_DIGEST_KIND, value)]
