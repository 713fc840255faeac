"""An issuer of ID tokens that tests run: a real server with discovery, keys, and GitHub's way to ask for
a token.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from hublet.core import clock
from hublet.core.ids import new_object_id

AUDIENCE = "http://hub.test"
REQUEST_TOKEN = "a secret of the runner"
GITHUB_CLAIMS = {
    "sub": "repo:acme/engine:ref:refs/heads/main",
    "repository": "acme/engine",
    "repository_id": "22",
    "repository_owner": "acme",
    "repository_owner_id": "11",
    "ref": "refs/heads/main",
    "ref_type": "branch",
    "sha": "b" * 40,
    "event_name": "push",
    "workflow_ref": "acme/engine/.github/workflows/release.yml@refs/heads/main",
    "job_workflow_ref": "acme/engine/.github/workflows/release.yml@refs/heads/main",
}
GITLAB_CLAIMS = {
    "sub": "project_path:acme/engine:ref_type:branch:ref:main",
    "project_path": "acme/engine",
    "project_id": "22",
    "namespace_id": "11",
    "ref": "main",
    "ref_type": "branch",
    "ref_path": "refs/heads/main",
    "sha": "b" * 40,
}


@cache
def rsa_key(name: str, *, bits: int = 2048) -> RSAKey:
    """A key for all tests of a process: to make one takes a tenth of a second."""
    return RSAKey.generate_key(bits, {"kid": name}, private=True)


@cache
def ec_key(name: str) -> ECKey:
    return ECKey.generate_key("P-256", {"kid": name}, private=True)


class IdTokenIssuer:
    """What the server says may be changed by a test, and it counts who asks."""

    def __init__(self) -> None:
        self.url = ""
        self.keys: list[Any] = [rsa_key("one")]
        self.documents: dict[str, Any] = {}
        self.status = 200
        self.asked: list[str] = []
        self.claims: dict[str, Any] = dict(GITHUB_CLAIMS)

    def answer(self, path: str) -> bytes:
        self.asked.append(path)
        default: Any = {}
        if path == "/.well-known/openid-configuration":
            default = {"issuer": self.url, "jwks_uri": f"{self.url}/jwks"}
        elif path == "/jwks":
            default = {"keys": [key.as_dict(private=False) for key in self.keys]}
        body = self.documents.get(path, default)
        return body if isinstance(body, bytes) else json.dumps(body).encode()

    def token(
        self, *, key: Any = None, header: dict[str, Any] | None = None, **changes: Any
    ) -> str:
        """Return a token of GitHub's form; a claim that is None is left out."""
        at = int(clock.now().timestamp())
        claims = self.claims | {
            "iss": self.url,
            "aud": AUDIENCE,
            "iat": at,
            "nbf": at,
            "exp": at + 300,
            "jti": new_object_id(),
        }
        claims = {name: value for name, value in (claims | changes).items() if value is not None}
        key = key or self.keys[0]
        algorithm = "RS256" if key.key_type == "RSA" else "ES256"
        fields = {"alg": algorithm, "kid": key.kid, "typ": "JWT", "x5t": "abc"} | (header or {})
        fields = {name: value for name, value in fields.items() if value is not None}
        return jwt.encode(fields, claims, key, algorithms=[algorithm])


def _handler(issuer: IdTokenIssuer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/mint":
                self._mint(parse_qs(parts.query))
            else:
                self._send(issuer.status, issuer.answer(parts.path))

        def _mint(self, query: dict[str, list[str]]) -> None:
            """Give a runner the token of its job, as GitHub does."""
            if self.headers["Authorization"] != f"Bearer {REQUEST_TOKEN}":
                self._send(401, b"{}")
                return
            token = issuer.token(aud=query["audience"][0])
            self._send(200, json.dumps({"value": token}).encode())

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            if status // 100 == 3:
                self.send_header("Location", f"{issuer.url}/elsewhere")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


@contextmanager
def running_issuer() -> Iterator[IdTokenIssuer]:
    issuer = IdTokenIssuer()
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(issuer)) as server:
        issuer.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield issuer
        server.shutdown()
        thread.join()
