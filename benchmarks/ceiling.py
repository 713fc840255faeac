"""The most that Python can do for `whoami` on this server: a bare function, the same SQL by hand.

It parses the header, digests the token, asks the database and answers the same bytes. It
has no limits, no access log, no metrics, no errors and no headers but two.
"""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
import uvicorn
import uvloop
from starlette.types import ASGIApp, Receive, Scope, Send

from benchmarks.raw_queries import RawQueries, open_raw_queries
from hublet.accounts.schemas import WIRE_PLANS
from hublet.core.clock import micros, wire
from hublet.core.config import Settings, load
from hublet.core.sealing import KeyRing

LOOKING_UP = "/looking-up"
REMEMBERING = "/remembering"


def application(keys: KeyRing, base_url: str, database: RawQueries) -> ASGIApp:
    fetch_token, fetch_user = database.fetch_token, database.fetch_user
    encode = msgspec.json.Encoder().encode
    remembered: dict[str, tuple[float, Sequence[Any]]] = {}
    seconds = Settings().tokens.cache_seconds

    async def remember(value: str) -> Sequence[Any]:
        found = remembered.get(value)
        if found is not None and found[0] > monotonic():
            return found[1]
        token = await look_up(value)
        remembered[value] = (monotonic() + seconds, token)
        return token

    async def look_up(value: str) -> Sequence[Any]:
        token = await fetch_token(keys.digest("token", value).hex())
        if token is None or (token[8] is not None and token[8] <= micros()):
            raise PermissionError
        return token

    async def answer(scope: Scope, _receive: Receive, send: Send) -> None:
        value = _bearer(scope["headers"])
        token = await (remember if scope["path"] == REMEMBERING else look_up)(value)
        body = encode(_whoami(token, await fetch_user(token[2]), base_url))
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return answer


def _bearer(headers: list[tuple[bytes, bytes]]) -> str:
    for name, value in headers:
        if name == b"authorization":
            return value.decode("latin-1").partition(" ")[2]
    raise PermissionError


def _whoami(token: Sequence[Any], rows: Sequence[Sequence[Any]], base_url: str) -> dict[str, Any]:
    user_id, name, fullname, user_type, email, verified_at, *_ = rows[0]
    shown = {"displayName": token[3], "role": token[4], "createdAt": wire(token[7])}
    return {
        "type": user_type,
        "id": user_id,
        "name": name,
        "fullname": fullname,
        "avatarUrl": f"{base_url}/avatars/{user_id}",
        "isPro": False,
        "orgs": [_organization(row, base_url) for row in rows],
        "auth": {"type": "access_token", "accessToken": shown},
        "email": email,
        "emailVerified": verified_at is not None,
        "canPay": False,
    }


def _organization(row: Sequence[Any], base_url: str) -> dict[str, Any]:
    _, _, _, _, _, _, role, organization_id, name, fullname, plan = row
    shown = {
        "type": "org",
        "id": organization_id,
        "name": name,
        "fullname": fullname,
        "avatarUrl": f"{base_url}/avatars/{organization_id}",
        "roleInOrg": role,
    }
    if plan in WIRE_PLANS:
        shown["plan"] = WIRE_PLANS[plan]
    return shown


async def _serve(given: argparse.Namespace) -> None:
    settings = load({"database.data_dir": given.data_dir, "database.url": given.database_url})
    keys = KeyRing.load_or_create(given.data_dir / "secret.keys")
    async with open_raw_queries(settings) as database:
        # The same server with the same settings as `hublet.serving`.
        config = uvicorn.Config(
            application(keys, given.base_url, database),
            port=given.port,
            http="httptools",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
        )
        await uvicorn.Server(config).serve()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--database-url")
    parser.add_argument("--base-url", required=True)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
