"""The ports of real jobs: HTTP and a websocket through the hub, until somebody closes them."""

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp
import httpx2
import pytest
from benchmarks.processes import free_port

from acceptance.test_jobs import Person, ada
from patience import SOON_SECONDS
from processes import Place, run_hublet, serving, wait_until

RUNNERS = [
    "process",
    pytest.param(
        "sandbox",
        marks=pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is missing."),
    ),
]

OK = 200
# How a websocket client calls the end of its connection.
CLOSED = {"CLOSE", "CLOSED", "ERROR"}

# HTTP and a websocket that repeats what it hears, with nothing but the standard library.
SERVER = """
import base64, hashlib, http.server, sys, threading
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        key = self.headers.get("Sec-WebSocket-Key")
        if key is not None:
            self.talk(key)
            return
        body = ("hello, " + str(self.headers.get("Authorization"))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        digest = hashlib.sha256(body).hexdigest().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(digest)))
        self.end_headers()
        self.wfile.write(digest)
    def talk(self, key):
        magic = key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        accept = base64.b64encode(hashlib.sha1(magic.encode()).digest()).decode()
        self.send_header("Sec-WebSocket-Accept", accept)
        self.end_headers()
        while True:
            head = self.rfile.read(2)
            size = head[1] & 127
            mask = self.rfile.read(4)
            text = bytes(c ^ mask[i % 4] for i, c in enumerate(self.rfile.read(size)))
            self.wfile.write(bytes([head[0], size]) + text)
            if head[0] & 15 == 8:
                self.close_connection = True
                return
    def log_message(self, *_):
        pass
class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
for port in sys.argv[1:]:
    server = Server(("127.0.0.1", int(port)), Handler)
    threading.Thread(target=server.serve_forever).start()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    place: Place
    person: Person
    runner: str

    def start(self, port: int, *public: int) -> str:
        """Start the server in a job, wait until it answers, and return the job."""
        ports = [port, *public]
        numbers = " ".join(map(str, ports))
        script = f"exec /usr/bin/python3 -c '{SERVER}' {numbers}"
        job_id = self.person.run(script, expose={"ports": ports, "portsPublic": list(public)})
        wait_until(
            lambda: self.ask(job_id, port, headers=self.token).status_code == OK,
            seconds=SOON_SECONDS,
        )
        return job_id

    @property
    def token(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.person.token}"}

    def urls(self, job_id: str) -> list[str]:
        shown = self.person.ask("GET", f"/api/jobs/ada/{job_id}")
        found: list[str] = shown["status"].get("exposeUrls", [])
        return found

    def host(self, job_id: str, port: int) -> str:
        return f"{job_id}--{port}.jobs.localhost:{urlsplit(self.person.address).port}"

    def ask(self, job_id: str, port: int, *, headers: dict[str, str]) -> httpx2.Response:
        # Not every resolver knows names under localhost, as browsers and curl do.
        host = {"Host": self.host(job_id, port)}
        return httpx2.get(self.person.address, headers=host | headers, trust_env=False)


@pytest.fixture(params=RUNNERS)
def site(request: pytest.FixtureRequest, place: Place) -> Iterator[Site]:
    variables = {"HUBLET_JOBS_RUNNER": request.param}
    with serving(place, "--test-mode", variables=variables) as hub:
        person = ada(place, hub.address)
        yield Site(place=place, person=person, runner=request.param)
        person.end_jobs()


async def talk(site: Site, job_id: str, port: int, words: list[str]) -> list[str]:
    """Say something over a websocket; return what was heard, and `closed` at its end."""
    headers = {"Host": site.host(job_id, port), **site.token}
    heard: list[str] = []
    address = site.person.address
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(address, headers=headers) as connection,
    ):
        for word in words:
            await connection.send_str(word)
            heard.append(await connection.receive_str())
    return heard


async def closed_after(site: Site, job_id: str, port: int, *command: str) -> str:
    """Run a command while a websocket is open; return what the websocket hears then."""
    headers = {"Host": site.host(job_id, port), **site.token}
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(site.person.address, headers=headers) as connection,
    ):
        await connection.send_str("still there")
        assert await connection.receive_str() == "still there"
        code, out, err = await asyncio.to_thread(site.person.hf, "2.4.0", *command)
        assert code == 0, out + err
        async with asyncio.timeout(SOON_SECONDS):
            return (await connection.receive()).type.name


def test_a_job_is_reached_until_its_port_is_closed(site: Site) -> None:
    port, public = free_port(), free_port()
    job_id = site.start(port, public)
    hosts = [f"http://{site.host(job_id, each)}" for each in (port, public)]
    assert site.urls(job_id) == hosts

    reached = site.ask(job_id, port, headers=site.token)
    assert (reached.status_code, reached.text) == (OK, "hello, None")
    assert site.ask(job_id, port, headers={}).status_code == 401
    assert site.ask(job_id, public, headers={}).text == "hello, None"
    assert asyncio.run(talk(site, job_id, port, ["one", "two"])) == ["one", "two"]

    command = ("jobs", "expose", job_id, "--clear")
    assert asyncio.run(closed_after(site, job_id, port, *command)) in CLOSED
    assert site.ask(job_id, port, headers=site.token).status_code == 404
    assert site.ask(job_id, public, headers={}).status_code == 401
    assert site.urls(job_id) == []


def test_a_token_that_is_revoked_by_another_process_is_out(site: Site) -> None:
    port = free_port()
    job_id = site.start(port)
    created = run_hublet("token", "create", "ada", *site.place.flags, folder=site.place.folder)
    other, token_id = created.stdout.strip(), created.stderr.split()[3]

    async def until_closed() -> str:
        headers = {"Host": site.host(job_id, port), "Authorization": f"Bearer {other}"}
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(site.person.address, headers=headers) as connection,
        ):
            await connection.send_str("in")
            assert await connection.receive_str() == "in"
            revoke = ("token", "revoke", "ada", token_id, *site.place.flags)
            ended = await asyncio.to_thread(run_hublet, *revoke, folder=site.place.folder)
            assert ended.returncode == 0, ended.stderr
            async with asyncio.timeout(SOON_SECONDS):
                return (await connection.receive()).type.name

    assert asyncio.run(until_closed()) in CLOSED
    assert site.ask(job_id, port, headers={"Authorization": f"Bearer {other}"}).status_code == 401


def test_a_job_that_is_over_is_gone(site: Site) -> None:
    port = free_port()
    job_id = site.start(port)

    site.person.ask("POST", f"/api/jobs/ada/{job_id}/cancel")
    site.person.ended(job_id)

    over = site.ask(job_id, port, headers=site.token)
    assert (over.status_code, over.json()) == (410, {"error": f"The job {job_id} is over."})
