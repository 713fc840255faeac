"""Commands that ask a hub: which one, as whom, and how they end."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.hublet_command import Hublet
from cli.terminals import run_on_terminal
from client.scripted_server import ScriptedResponse, ServerScript, scripted_server
from hublet.cli import credentials
from hublet.cli.credentials import Credential
from hublet.core import config
from patience import SOON_SECONDS
from processes import HUBLET, clean_environment

ME = ScriptedResponse(body=json.dumps({"name": "ada", "orgs": [{"name": "acme"}]}).encode())
WEBHOOK = {
    "id": "a" * 24,
    "url": "https://example.com/hook",
    "disabled": False,
    "watched": [{"type": "model", "name": f"ada/{'engine' * 20}"}],
    "hasSecret": False,
    "domains": ["repo"],
}
WEBHOOKS = ScriptedResponse(body=json.dumps([WEBHOOK]).encode())


@pytest.fixture
def hub() -> Iterator[ServerScript]:
    with scripted_server(ME, ME, ME, ME) as hub:
        yield hub


def sent(hub: ServerScript) -> str | None:
    return hub.asked[-1].headers.get("authorization")


def test_at_a_hub_that_is_named_flags_come_first_then_variables_then_the_login(
    run: Hublet, hub: ServerScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials.save(hub.address, Credential(user="ada", token="hf_login"))
    monkeypatch.setenv("HF_ENDPOINT", hub.address)
    run("whoami")
    by_login = sent(hub)
    monkeypatch.setenv("HF_TOKEN", "hf_public")
    run("whoami")
    by_public_variable = sent(hub)
    monkeypatch.setenv("HUBLET_TOKEN", "hf_ours")
    run("whoami")
    by_variable = sent(hub)
    run("whoami", "--token", "hf_flag")

    assert [by_login, by_public_variable, by_variable, sent(hub)] == [
        "Bearer hf_login", "Bearer hf_public", "Bearer hf_ours", "Bearer hf_flag",
    ]  # fmt: skip


def test_a_token_for_elsewhere_is_not_shown_to_the_hub_of_the_login(
    run: Hublet, hub: ServerScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials.save(hub.address, Credential(user="ada", token="hf_login"))
    monkeypatch.setenv("HF_TOKEN", "hf_public")
    run("whoami")
    by_default = sent(hub)
    run("whoami", "--endpoint", hub.address)

    assert [by_default, sent(hub)] == ["Bearer hf_login", "Bearer hf_public"]


def test_without_a_login_a_token_in_a_variable_is_enough(
    run: Hublet, hub: ServerScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hublet.cli.remote_command.DEFAULT_ENDPOINT", hub.address)
    monkeypatch.setenv("HF_TOKEN", "hf_public")
    run("whoami")

    assert sent(hub) == "Bearer hf_public"


@pytest.mark.parametrize(
    ("flags", "variables", "advice"),
    [
        pytest.param(["--token", "hf_x"], {}, "That token came from --token.", id="the flag"),
        pytest.param(
            [],
            {"HF_TOKEN": "hf_x"},
            "That token came from the variable HF_TOKEN: unset it, or set one of this hub.",
            id="a variable",
        ),
        pytest.param(
            [],
            {},
            "That token is the one of your login in {file}: log in again with `hublet login`.",
            id="the login",
        ),
    ],
)
def test_a_token_that_is_refused_is_told_by_where_it_came_from(
    run: Hublet,
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
    variables: dict[str, str],
    advice: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with scripted_server(
        ScriptedResponse(status=401, body=b'{"error": "Invalid credentials"}')
    ) as hub:
        credentials.save(hub.address, Credential(user="ada", token="hf_login"))
        refused = run("whoami", "--endpoint", hub.address, *flags)

    told = advice.format(file=credentials.path())
    assert (refused.code, refused.err) == (1, f"hublet: Invalid credentials. {told}\n")


@pytest.mark.parametrize(
    ("command", "body"),
    [
        pytest.param(["whoami"], b'{"hello": "world"}', id="another object"),
        pytest.param(["whoami"], b"[]", id="a list for an object"),
        pytest.param(["whoami"], b"null", id="nothing"),
        pytest.param(["whoami"], b'{"name": 3}', id="a number for a name"),
        pytest.param(["webhooks", "list"], b"[1, 2]", id="a list of something else"),
        pytest.param(["webhooks", "list"], b'{"a": 1}', id="an object for a list"),
        pytest.param(["notifications", "list"], b'"hello"', id="a text"),
        pytest.param(["login"], b'{"hello": "world"}', id="a login"),
        pytest.param(["jobs", "list"], b'{"hello": "world"}', id="a name that is missing"),
    ],
)
def test_what_answers_like_no_hub_is_told_in_a_sentence(
    run: Hublet, command: list[str], body: bytes
) -> None:
    with scripted_server(ScriptedResponse(body=body)) as hub:
        done = run(*command, "--endpoint", hub.address)

    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"hublet: What answers at {hub.address} is not understood (")
    assert done.err.endswith(" Name another one with --endpoint or HUBLET_ENDPOINT.\n")


def test_the_hub_is_chosen_in_the_same_order(
    run: Hublet, hub: ServerScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = "http://127.0.0.1:1"
    by_default = run("whoami").err
    credentials.save("http://127.0.0.1:2", Credential(user="ada", token="hf_a"))
    by_login = run("whoami").err
    monkeypatch.setenv("HF_ENDPOINT", f"{away}/")
    by_public_variable = run("whoami").err
    monkeypatch.setenv("HUBLET_ENDPOINT", "http://127.0.0.1:3")
    by_variable = run("whoami").err

    assert "answers at http://localhost:8000 (" in by_default
    assert "answers at http://127.0.0.1:2 (" in by_login
    assert f"answers at {away} (" in by_public_variable
    assert "answers at http://127.0.0.1:3 (" in by_variable
    assert run("whoami", "--endpoint", hub.address).err == f"at {hub.address}, in acme\n"


def test_a_login_elsewhere_is_not_shown_to_this_hub(run: Hublet, hub: ServerScript) -> None:
    credentials.save("https://hub.example.com", Credential(user="ada", token="hf_elsewhere"))

    run("whoami", "--endpoint", hub.address)

    assert sent(hub) is None


def test_a_hub_that_is_away_has_a_code_of_its_own(run: Hublet) -> None:
    away = run("whoami", "--endpoint", "http://127.0.0.1:1", "--token", "hf_secret")

    assert (away.code, away.out) == (3, "")
    assert away.err == (
        "hublet: No hub answers at http://127.0.0.1:1 (connection refused). Is it running? Start "
        "one with `hublet serve`, or name another one with --endpoint or HUBLET_ENDPOINT.\n"
    )


def test_an_address_that_is_none_is_wrong_usage(run: Hublet) -> None:
    wrong = run("whoami", "--endpoint", "http://ada:secret@hub.test")

    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err.startswith("hublet: The address of a hub looks like https://hub.example.com")
    assert "secret" not in wrong.err


def test_a_refusal_is_told_as_the_hub_tells_it(run: Hublet) -> None:
    with scripted_server(
        ScriptedResponse(status=403, body=b'{"error": "The token lacks the scope jobs."}')
    ) as hub:
        refused = run("whoami", "--endpoint", hub.address, "--token", "hf_secret")

    assert (refused.code, refused.out) == (1, "")
    assert refused.err == "hublet: The token lacks the scope jobs.\n"


def test_data_and_words_go_their_own_ways(run: Hublet, hub: ServerScript) -> None:
    text = run("whoami", "--endpoint", hub.address)
    quiet = run("whoami", "--endpoint", hub.address, "-q")
    as_json = run("whoami", "--endpoint", hub.address, "--json")

    assert (text.out, text.err) == ("ada\n", f"at {hub.address}, in acme\n")
    assert (quiet.out, quiet.err) == ("ada\n", "")
    assert as_json.json == {"endpoint": hub.address, "name": "ada", "orgs": [{"name": "acme"}]}
    assert as_json.err == ""


def test_a_terminal_shows_a_table_that_fits_and_a_bold_heading(tmp_path: Path) -> None:
    with scripted_server(WEBHOOKS) as hub:
        seen = run_on_terminal(
            *("webhooks", "list", "--endpoint", hub.address, "--token", "hf_x"),
            variables={"XDG_CONFIG_HOME": str(tmp_path)},
            columns=100,
        )

    heading, line = seen.screen.splitlines()
    assert seen.code == 0
    assert heading.startswith("\x1b[1mid ")
    assert heading.endswith("last trigger\x1b[0m")
    assert len(line) <= 100
    assert "…" in line


def test_a_pipe_gets_no_colours_and_the_whole_table(run: Hublet) -> None:
    with scripted_server(WEBHOOKS) as hub:
        listed = run("webhooks", "list", "--endpoint", hub.address, "--token", "hf_x")

    assert "\x1b" not in listed.out
    assert f"model:ada/{'engine' * 20}" in listed.out


@pytest.mark.parametrize(
    ("typed", "code", "asked", "ending"),
    [
        pytest.param("y\n", 0, 1, f"Deleted the webhook {'a' * 24}.", id="yes"),
        pytest.param("Yes\n", 0, 1, f"Deleted the webhook {'a' * 24}.", id="Yes"),
        pytest.param("\n", 1, 0, "hublet: Nothing was changed.", id="nothing means no"),
        pytest.param("n\n", 1, 0, "hublet: Nothing was changed.", id="no"),
        pytest.param("\x03", 130, 0, "[y/N]", id="an interrupt is quiet"),
    ],
)
def test_a_deletion_is_asked_about_on_a_terminal(
    tmp_path: Path, typed: str, code: int, asked: int, ending: str
) -> None:
    with scripted_server(ScriptedResponse()) as hub:
        seen = run_on_terminal(
            *("webhooks", "delete", "a" * 24, "--endpoint", hub.address, "--token", "hf_x"),
            variables={"XDG_CONFIG_HOME": str(tmp_path)},
            answers={"[y/N] ": typed},
        )

    assert seen.screen.startswith(f"Delete the webhook {'a' * 24} for good? [y/N] ")
    assert seen.code == code
    assert len(hub.asked) == asked
    assert ending in seen.screen
    assert "Traceback" not in seen.screen


def test_what_takes_long_is_shown_on_a_terminal_and_taken_away(tmp_path: Path) -> None:
    answer = ScriptedResponse(body=b'{"deliveryId": "b", "status": 200}')
    arguments = ("webhooks", "ping", "a" * 24, "--token", "hf_x")
    with scripted_server(answer, answer) as hub:
        seen = run_on_terminal(
            *arguments, "--endpoint", hub.address, variables={"XDG_CONFIG_HOME": str(tmp_path)}
        )

    assert seen.screen == "Waiting for the target…\r\x1b[Kb\nThe target answered 200.\n"


def test_an_interrupt_ends_quietly(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with subprocess.Popen(
            [*HUBLET, "whoami", "--endpoint", address, "--token", "hf_x"],
            env=clean_environment({"XDG_CONFIG_HOME": str(tmp_path)}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            connection, _ = silent.accept()
            with connection:
                connection.recv(1)
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=SOON_SECONDS)

    assert (process.returncode, out, err) == (130, "", "")


def test_a_reader_that_leaves_is_no_error_to_tell(tmp_path: Path) -> None:
    many = ScriptedResponse(body=json.dumps([WEBHOOK] * 5000).encode())
    with scripted_server(many) as hub:
        line = [*HUBLET, "webhooks", "list", "--json", "--endpoint", hub.address, "--token", "hf_x"]
        with subprocess.Popen(
            line,
            env=clean_environment({"XDG_CONFIG_HOME": str(tmp_path)}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.read(1)
            process.stdout.close()
            words = process.stderr.read()

    assert words == b""


@pytest.mark.parametrize(
    ("shell", "place"),
    [("bash", ".bash_completions"), ("zsh", ".zfunc"), ("fish", ".config/fish")],
)
def test_completion_can_be_installed(tmp_path: Path, shell: str, place: str) -> None:
    # Without this typer takes the shell among our parents, which may be another one, or none.
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    environment = clean_environment({"HOME": str(tmp_path)} | named)
    line = [str(Path(sys.executable).with_name("hublet")), "--install-completion", shell]

    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    written = [path for path in (tmp_path / place).rglob("*") if path.is_file()]
    assert any("hublet" in path.read_text() for path in written)


def completed(words: str, tmp_path: Path, **variables: str) -> list[str]:
    environment = clean_environment(
        {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), **variables}
        | {"_HUBLET_COMPLETE": "complete_bash", "COMP_WORDS": words}
        | {"COMP_CWORD": str(len(words.split(" ")) - 1)}
    )
    line = [str(Path(sys.executable).with_name("hublet"))]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.split()


def test_the_types_that_can_be_watched_are_completed(tmp_path: Path) -> None:
    assert completed("hublet webhooks create --watch ", tmp_path) == [
        "model:", "dataset:", "space:", "bucket:", "kernel:", "container:", "user:", "org:",
    ]  # fmt: skip
    assert completed("hublet webhooks create --watch d", tmp_path) == ["dataset:"]


def test_ids_of_webhooks_are_completed_as_far_as_the_hub_answers(tmp_path: Path) -> None:
    with scripted_server(WEBHOOKS) as hub:
        found = completed("hublet webhooks info a", tmp_path, HUBLET_ENDPOINT=hub.address)

    assert found == ["a" * 24]
    away = {"HUBLET_ENDPOINT": "http://127.0.0.1:1"}
    assert completed("hublet webhooks info a", tmp_path, **away) == []


def test_the_variables_of_commands_are_no_settings_of_a_hub() -> None:
    variables = {"HUBLET_ENDPOINT": "http://127.0.0.1:1", "HUBLET_TOKEN": "hf_x"}

    assert config.load({}, variables) == config.load({}, {})
