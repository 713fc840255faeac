"""The command as a whole: names that scripts rely on, and what every command offers."""

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from cli.running import Hublet
from hublet.cli import app


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield every command that does something, with its words."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands(get_command(app)))


def options(command: Any) -> set[str]:
    return {name for each in command.params for name in each.opts if name.startswith("-")}


def test_these_are_all_commands() -> None:
    assert set(COMMANDS) == {
        "serve", "worker", "migrate", "version", "demo", "doctor",
        "user add", "user list", "user disable", "user enable", "user password",
        "org add", "org list", "org plan",
        "org member add", "org member role", "org member remove", "org member list",
        "token create", "token list", "token revoke",
        "oauth app list", "oauth app show", "oauth app create", "oauth app delete",
        "oauth app allow-exchange",
        "task list", "task retry",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ("serve", "--host --port --data-dir --database-url --base-url --test-mode"),
        ("worker", "--data-dir --database-url"),
        ("user add", "--email --password --admin --fullname --password-stdin"),
        ("user password", "--password --password-stdin"),
        ("org add", "--plan --fullname --owner"),
        ("org member add", "--role"),
        ("token create", "--role --scope --name --value --org --expires-in"),
        ("token revoke", "--value-stdin"),
        ("oauth app create", "--owner --org --redirect-uri --scope --secret"),
        ("oauth app allow-exchange", "--off"),
        ("task retry", "--all"),
    ],
)
def test_flags_that_scripts_rely_on(words: str, flags: str) -> None:
    assert set(flags.split()) <= options(COMMANDS[words])


@pytest.mark.parametrize("words", sorted(set(COMMANDS) - {"version"}))
def test_every_command_can_be_pointed_to_a_hub_and_asked_for_json(words: str) -> None:
    assert {"--data-dir", "--database-url", "--config", "--json"} <= options(COMMANDS[words])


@pytest.mark.parametrize("words", [words for words in COMMANDS if words.endswith("list")])
def test_every_list_can_be_quiet(words: str) -> None:
    assert {"--quiet", "-q"} <= options(COMMANDS[words])


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_tells_what_it_does_with_an_example_that_can_be_read(words: str) -> None:
    command = COMMANDS[words]

    start, _, example = command.epilog.partition(": ")
    assert command.help.endswith(".")
    assert start == "Example"
    assert example.startswith(f"hublet {words}")
    arguments = example.partition(" < ")[0].removeprefix(f"hublet {words}")
    with command.make_context(words, shlex.split(arguments)) as context:
        assert context.args == []


@pytest.mark.parametrize("words", ["", "user", "org", "org member", "token", "task"])
def test_a_group_alone_shows_its_help(run: Hublet, words: str) -> None:
    shown = run(*words.split())

    assert shown.code == 2
    assert f"Usage: {' '.join(['hublet', *words.split()])} [OPTIONS] COMMAND" in (
        shown.out + shown.err
    )


def test_the_short_flag_for_help_works_everywhere(run: Hublet) -> None:
    shown = run("org", "member", "add", "-h")

    assert shown.code == 0
    assert "Example: hublet org member add acme ada --role admin" in shown.out
