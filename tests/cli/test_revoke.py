"""`hublet revoke` against a running hub."""

import json
from pathlib import Path

import pytest

from cli.hublet_command import Hublet
from client.scripted_server import ScriptedResponse, scripted_server
from patience import SOON_SECONDS
from processes import Server, wait_until


def a_token(server: Server) -> str:
    with server.client(server.token) as client:
        made = client.post("/api/settings/tokens", json={"name": "leaked", "role": "read"})
    assert made.status_code == 200, made.text
    return str(made.json()["value"])


def is_dead(server: Server, token: str) -> bool:
    with server.client(token) as client:
        return client.get("/api/whoami-v2").status_code == 401


def test_what_stands_in_a_file_is_revoked(ask: Hublet, server: Server, tmp_path: Path) -> None:
    tokens = [a_token(server), a_token(server)]
    file = tmp_path / "leaked.txt"
    file.write_text("\n".join([*tokens, "", "hf_nobody", tokens[0]]))

    done = ask("revoke", "--file", str(file))

    assert (done.code, done.out) == (0, ""), done.err
    assert done.err == (
        "Handed in 3 credentials. What existed is revoked within a second, and its owner is told.\n"
    )
    wait_until(lambda: all(is_dead(server, token) for token in tokens), seconds=SOON_SECONDS)


def test_standard_input_is_read_where_a_dash_stands(ask: Hublet, server: Server) -> None:
    token = a_token(server)

    done = ask("revoke", "-", "--json", stdin=f"  {token}\n")

    assert (done.code, done.json) == (0, {"count": 1})
    wait_until(lambda: is_dead(server, token), seconds=SOON_SECONDS)


@pytest.mark.parametrize("from_file", [True, False], ids=["a file", "standard input"])
def test_a_mark_at_the_start_is_no_part_of_the_first(
    run: Hublet, tmp_path: Path, *, from_file: bool
) -> None:
    file = tmp_path / "leaked.txt"
    file.write_text("\ufeffhf_first\r\nhf_second\r\n", encoding="utf-8")
    with scripted_server(ScriptedResponse()) as hub:
        where = ["--endpoint", hub.address]
        if from_file:
            done = run("revoke", "--file", str(file), *where)
        else:
            done = run("revoke", "-", *where, stdin=file.read_text(encoding="utf-8"))

    assert done.code == 0, done.err
    assert json.loads(hub.asked[0].body) == {"credentials": ["hf_first", "hf_second"]}


def test_an_argument_is_revoked_with_a_word_on_the_history(ask: Hublet, server: Server) -> None:
    token = a_token(server)

    done = ask("revoke", token, "-q")

    assert (done.code, done.out) == (0, ""), done.err
    assert done.err == (
        "What stands in a command stays in the history of the shell; a file does not.\n"
    )
    wait_until(lambda: is_dead(server, token), seconds=SOON_SECONDS)


def test_more_than_a_thousand_are_handed_in_together(ask: Hublet) -> None:
    done = ask("revoke", "-", "--json", stdin="\n".join(f"hf_{n}" for n in range(2500)))

    assert (done.code, done.json) == (0, {"count": 2500})


def test_no_login_is_needed(ask: Hublet, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    token = a_token(server)
    monkeypatch.delenv("HUBLET_TOKEN")

    assert ask("revoke", "-", stdin=token).code == 0
    wait_until(lambda: is_dead(server, token), seconds=SOON_SECONDS)


def test_a_line_that_is_too_long_is_named_and_not_shown(ask: Hublet, server: Server) -> None:
    token = a_token(server)

    done = ask("revoke", "-", stdin=f"{token}\n{'x' * 201}")

    assert done.code == 2
    assert "Line 2 has more than 200 characters" in " ".join(done.err.split())
    assert token not in done.err
    assert "xxx" not in done.err
    # Nothing was handed in.
    assert not is_dead(server, token)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param([], "There is no credential", id="nothing at all"),
        pytest.param(["-"], "There is no credential", id="nothing on standard input"),
        pytest.param(["--file", "/nowhere"], "/nowhere cannot be read", id="no such file"),
    ],
)
def test_without_a_credential_nothing_is_asked(
    ask: Hublet, arguments: list[str], sentence: str
) -> None:
    done = ask("revoke", *arguments)

    assert done.code == 2
    assert sentence in " ".join(done.err.split())
