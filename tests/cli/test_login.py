"""Login, logout and whoami, against a running hub and a person with a browser."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cli.hublet_command import Hublet
from hublet.cli import credentials
from hublet.cli.credentials import Credential
from hublet.core.clock import micros
from hublet.testing import Browser
from processes import Server

DAY = 86_400

Meanwhile = Callable[[Callable[[float], object]], None]


def works(server: Server, token: str) -> bool:
    with server.client(token) as client:
        return client.get("/api/whoami-v2").status_code == 200


def known(server: Server) -> Credential:
    found = credentials.find(server.address)
    assert found is not None
    return found


def now() -> int:
    return micros() // 1_000_000


@pytest.fixture
def person(server: Server) -> Browser:
    return Browser(server.address, name=str(server.user), password=str(server.password))


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Lets something happen whenever the command waits."""
    return lambda happen: monkeypatch.setattr("hublet.client.device_login.pause", happen)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the command says while it runs."""
    words: list[str] = []
    monkeypatch.setattr("hublet.cli.login.say", words.append)
    return words


@pytest.fixture
def logged_in(
    run: Hublet, server: Server, person: Browser, meanwhile: Meanwhile, told: list[str]
) -> Credential:
    meanwhile(lambda _seconds: person.allow(told[0].removeprefix("Open ")))
    done = run("login", "--endpoint", server.address)
    assert done.code == 0, done.err
    return known(server)


def test_a_person_allows_the_login_in_a_browser(
    run: Hublet, server: Server, person: Browser, meanwhile: Meanwhile, told: list[str]
) -> None:
    waits: list[float] = []

    def allow(seconds: float) -> None:
        waits.append(seconds)
        person.allow(told[0].removeprefix("Open "))

    meanwhile(allow)
    done = run("login", "--endpoint", server.address)

    assert (done.code, done.out) == (0, "")
    assert done.err == f"You are {server.user} at {server.address}, until you log out.\n"
    assert re.fullmatch(rf"Open {server.address}/device\?user_code=\S+", told[0])
    assert re.fullmatch(r"and allow the code \w{4}-\w{4}\.", told[1])
    assert waits == [5]
    found = known(server)
    assert works(server, found.token)
    assert found.refresh_token is not None
    assert found.expires_at is not None
    assert 29 * DAY < found.expires_at - now() <= 30 * DAY


def test_later_commands_know_the_hub_and_the_person(
    run: Hublet, server: Server, logged_in: Credential
) -> None:
    seen = run("whoami")

    assert logged_in.user == server.user
    assert (seen.code, seen.out, seen.err) == (0, f"{server.user}\n", f"at {server.address}\n")
    assert run("webhooks", "list", "--json").json == []


def test_a_refused_login_ends(
    run: Hublet,
    server: Server,
    person: Browser,
    meanwhile: Meanwhile,
    told: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    meanwhile(lambda _seconds: person.deny(told[0].removeprefix("Open ")))

    done = run("login", "--endpoint", server.address)

    assert (done.code, done.out) == (1, "")
    assert done.err == "hublet: The login was refused in the browser.\n"
    assert credentials.find(server.address) is None


def test_a_login_that_nobody_allows_expires(
    run: Hublet,
    server: Server,
    meanwhile: Meanwhile,
    monkeypatch: pytest.MonkeyPatch,
    told: list[str],
) -> None:
    begun = iter([0.0, 1.0, 901.0])
    monkeypatch.setattr("hublet.client.device_login.monotonic", lambda: next(begun))
    meanwhile(lambda _seconds: None)

    done = run("login", "--endpoint", server.address)

    assert done.code == 1
    assert done.err == (
        "hublet: The code has expired: nobody allowed this login in time. Log in again.\n"
    )


def test_the_page_is_opened_only_when_that_is_asked(
    run: Hublet,
    server: Server,
    person: Browser,
    meanwhile: Meanwhile,
    told: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    meanwhile(lambda _seconds: person.allow(told[-2].removeprefix("Open ")))

    run("login", "--endpoint", server.address)
    without = list(opened)
    run("login", "--endpoint", server.address, "--browser")

    assert without == []
    assert opened == [told[2].removeprefix("Open ")]


def test_a_new_login_ends_the_one_before(
    run: Hublet, server: Server, person: Browser, logged_in: Credential, told: list[str]
) -> None:
    del told[:]

    run("login", "--endpoint", server.address)

    assert known(server).token != logged_in.token
    assert not works(server, logged_in.token)
    assert works(server, known(server).token)


def test_a_pasted_token_is_kept(run: Hublet, server: Server) -> None:
    token = str(server.token)

    done = run("login", "--endpoint", server.address, "--token-stdin", "--json", stdin=f"{token}\n")

    assert (done.code, done.err) == (0, "")
    assert done.json == {"endpoint": server.address, "user": server.user}
    assert known(server) == Credential(user=str(server.user), token=token)


def test_the_hub_may_stand_behind_the_command(run: Hublet, server: Server) -> None:
    done = run("login", server.address, "--token-stdin", "--json", stdin=str(server.token))
    bad = run("login", "nowhere", "--token-stdin", stdin="hf_x")

    assert (done.code, done.json["endpoint"]) == (0, server.address)
    assert known(server).token == server.token
    assert bad.code == 2
    assert bad.err.startswith("hublet: The address of a hub looks like ")


def test_a_variable_that_goes_before_the_login_is_told(
    run: Hublet, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = str(server.token)
    monkeypatch.setenv("HF_TOKEN", "hf_public")
    alone = run("login", "--endpoint", server.address, "--token-stdin", stdin=token)
    monkeypatch.setenv("HF_ENDPOINT", f"{server.address}/")
    both = run("login", "--token-stdin", stdin=token)

    welcome = f"You are {server.user} at {server.address}, until you log out.\n"
    assert (alone.code, alone.err) == (0, welcome)
    assert (both.code, both.err) == (
        0,
        f"The variable HF_TOKEN is set and goes before this login: unset it.\n{welcome}",
    )


@pytest.mark.parametrize(
    ("pasted", "complaint"),
    [
        pytest.param("", "There is no token on standard input.", id="nothing"),
        pytest.param(
            "hf_wrong",
            "Invalid credentials in Authorization header. Log in with",
            id="a token of nobody",
        ),
        pytest.param(
            "hf_\nwith more", "The token has characters that no token has.", id="two lines"
        ),
    ],
)
def test_a_bad_token_is_not_kept(run: Hublet, server: Server, pasted: str, complaint: str) -> None:
    done = run("login", "--endpoint", server.address, "--token-stdin", stdin=pasted)

    assert done.code == 1
    assert done.err.startswith(f"hublet: {complaint}")
    assert "hf_" not in done.err
    assert credentials.find(server.address) is None


def test_logging_out_revokes_the_login(run: Hublet, server: Server, logged_in: Credential) -> None:
    done = run("logout")

    assert (done.code, done.err) == (0, f"You are logged out from {server.address}.\n")
    assert not works(server, logged_in.token)
    assert credentials.find(server.address) is None
    assert run("logout", "--endpoint", server.address).err == (
        f"You are not logged in at {server.address}.\n"
    )


def test_logging_out_leaves_a_pasted_token_alone(run: Hublet, server: Server) -> None:
    run("login", "--endpoint", server.address, "--token-stdin", stdin=str(server.token))

    done = run("logout")

    assert done.err == f"Forgot your token for {server.address}. The token itself still works.\n"
    assert works(server, str(server.token))


def test_a_hub_that_is_away_is_forgotten_all_the_same(run: Hublet) -> None:
    away = "http://127.0.0.1:1"
    credentials.save(away, Credential(user="ada", token="hf_a", refresh_token="hf_r"))

    done = run("logout")

    assert done.code == 3
    assert done.err.startswith("The login is forgotten here, but the hub could not be told")
    assert credentials.find(away) is None


def test_a_token_is_renewed_a_day_before_it_expires(
    run: Hublet, server: Server, logged_in: Credential
) -> None:
    credentials.save(server.address, replace(logged_in, expires_at=now() + DAY - 60))

    seen = run("whoami", "-q")

    renewed = known(server)
    assert (seen.code, seen.out, seen.err) == (0, f"{server.user}\n", "")
    assert renewed.token != logged_in.token
    assert renewed.refresh_token != logged_in.refresh_token
    assert renewed.expires_at is not None
    assert renewed.expires_at > now() + 29 * DAY
    assert works(server, renewed.token)


def test_a_token_with_more_than_a_day_left_is_used_as_it_is(
    run: Hublet, server: Server, logged_in: Credential
) -> None:
    credentials.save(server.address, replace(logged_in, expires_at=now() + DAY + 600))

    assert run("whoami").code == 0
    assert known(server).token == logged_in.token


def test_a_login_that_the_hub_has_ended_is_told(
    run: Hublet, server: Server, logged_in: Credential
) -> None:
    ended = replace(logged_in, expires_at=now(), refresh_token="hf_ended")
    credentials.save(server.address, ended)

    seen = run("whoami", "-q")

    assert (seen.code, seen.out) == (0, f"{server.user}\n")
    assert seen.err == (
        f"The login at {server.address} has ended; log in again with `hublet login`.\n"
    )


def test_whoami_tells_all_there_is_as_json(run: Hublet, server: Server) -> None:
    seen = run("whoami", "--endpoint", server.address, "--token", str(server.token), "--json")

    assert seen.json["name"] == server.user
    assert seen.json["endpoint"] == server.address
    assert seen.json["auth"]["type"] == "access_token"


def test_a_stranger_is_told_to_log_in(run: Hublet, server: Server) -> None:
    seen = run("whoami", "--endpoint", server.address)

    assert (seen.code, seen.out) == (1, "")
    assert seen.err.endswith(
        "Log in with `hublet login`, or give a token with --token or HUBLET_TOKEN.\n"
    )


def test_the_file_holds_what_a_login_needs_and_nobody_else_reads_it(
    run: Hublet, server: Server, logged_in: Credential, tmp_path: Path
) -> None:
    file = tmp_path / "config" / "hublet" / "credentials.json"

    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert json.loads(file.read_text()) == {
        "endpoint": server.address,
        "hubs": {
            server.address: {
                "user": server.user,
                "token": logged_in.token,
                "refresh_token": logged_in.refresh_token,
                "expires_at": logged_in.expires_at,
            }
        },
    }
