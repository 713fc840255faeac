"""npm's oidc-provider as a server: what it is started with, and what it prepares."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.figures import Spoiled
from benchmarks.hubs import ServedHub
from benchmarks.peers.node import NODE, folder_with
from benchmarks.processes import fetch, free_port, running, wait_until_it_answers

PACKAGE = "oidc-provider@9.13.3"
CLIENT_ID = "engine"
CLIENT_SECRET = "a-secret-of-the-benchmarks"

_SCRIPT = Path(__file__).parent / "oidc_provider.mjs"
_DISCOVERY = "/.well-known/openid-configuration"


@contextmanager
def serving(
    folder: Path, *, durable: bool, redirect_uri: str, challenge: str, core: int | None
) -> Iterator[ServedHub]:
    port = free_port()
    name = "peer-on-disk" if durable else "peer-in-memory"
    plan = {
        "folder": str(folder_with(PACKAGE, name="oauth")),
        "port": port,
        "path": str(folder / f"{name}.db") if durable else None,
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "redirect_uri": redirect_uri,
        "challenge": challenge,
        "user": "ada",
    }
    command = [str(NODE), str(_SCRIPT), json.dumps(plan)]
    # As it is run in production.
    variables = {"NODE_ENV": "production"}
    with running(command, output=folder / f"{name}.log", core=core, variables=variables) as child:
        wait_until_it_answers(child, port, _DISCOVERY)
        yield ServedHub(child=child, port=port)


def prepared(peer: ServedHub, kind: str, *, count: int, scopes: str) -> list[str]:
    """Have it make codes or tokens that a person agreed to, and return their values."""
    query = urlencode({"kind": kind, "count": count, "scope": scopes})
    status, body = fetch(peer.port, f"/prepare?{query}")
    if status != 200:
        raise Spoiled(f"oidc-provider could not prepare {kind}: {body.decode(errors='replace')}")
    values: list[str] = json.loads(body)
    return values
