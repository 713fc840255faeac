"""The command as a whole: names that scripts rely on, and what every command offers."""

import shlex
from collections.abc import Iterator
from typing import Any, Literal, get_origin

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from cli.hublet_command import Hublet
from hublet.cli import application


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield every command that does something, with its words."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands(get_command(application())))


def options(command: Any) -> set[str]:
    return {name for each in command.params for name in each.opts if name.startswith("-")}


def test_these_are_all_commands() -> None:
    assert set(COMMANDS) == {
        "serve", "worker", "migrate", "version", "demo", "doctor",
        "user add", "user list", "user disable", "user enable", "user password", "user invite",
        "user reset-link",
        "org add", "org list", "org plan", "org visibility",
        "org member add", "org member role", "org member remove", "org member list",
        "org audit", "org token list", "org token revoke", "org network",
        "token create", "token list", "token revoke",
        "registry-credentials set", "registry-credentials list", "registry-credentials remove",
        "oauth app list", "oauth app show", "oauth app create", "oauth app delete",
        "oauth app allow-exchange",
        "oauth publisher list", "oauth publisher add", "oauth publisher remove",
        "task list", "task retry",
        "backup", "restore",
        "storage usage", "storage prune", "storage verify", "storage new-epoch", "storage move",
        "login", "logout", "whoami",
        "webhooks list", "webhooks info", "webhooks create", "webhooks update",
        "webhooks enable", "webhooks disable", "webhooks delete",
        "webhooks deliveries", "webhooks replay", "webhooks recover", "webhooks ping",
        "webhooks listen", "webhooks verify",
        "revoke",
        "notifications list", "notifications read", "notifications unread", "notifications done",
        "notifications listen", "notifications watch", "notifications mute",
        "notifications settings",
        "search",
        "collections list", "collections info", "collections create", "collections update",
        "collections add", "collections remove", "collections delete",
        "sql",
        "jobs run", "jobs rerun", "jobs list", "jobs inspect", "jobs hardware", "jobs logs",
        "jobs wait", "jobs stats", "jobs cancel", "jobs labels", "jobs expose", "jobs delete",
        "jobs scheduled run", "jobs scheduled list", "jobs scheduled inspect",
        "jobs scheduled suspend", "jobs scheduled resume", "jobs scheduled reschedule",
        "jobs scheduled trigger", "jobs scheduled delete",
    }  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS)
def test_only_the_command_that_is_named_is_loaded_and_it_is_whole(words: str) -> None:
    alone = dict(commands(get_command(application([*words.split(), "--help"]))))

    assert set(alone) == {words}
    assert options(alone[words]) == options(COMMANDS[words])


@pytest.mark.parametrize(
    "words", [["jobs"], ["jobs", "--help"], ["jobs", "lst"], ["org", "member"]]
)
def test_a_group_that_is_named_is_whole(words: list[str]) -> None:
    loaded = dict(commands(get_command(application(words))))

    group = [word for word in words if word in {"jobs", "org", "member"}]
    assert set(loaded) == {each for each in COMMANDS if each.split()[: len(group)] == group}


def test_the_help_of_all_commands_is_what_they_say_themselves() -> None:
    whole = CliRunner().invoke(application(), ["--help"])
    short = CliRunner().invoke(application(["--help"]), ["--help"])

    assert whole.output.count("\n") > 25
    assert short.output == whole.output


@pytest.mark.parametrize("words", [[], ["--install-completion"], ["job"]])
def test_without_the_name_of_a_command_all_are_there(words: list[str]) -> None:
    assert set(dict(commands(get_command(application(words))))) == set(COMMANDS)


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ("serve", "--host --port --data-dir --database-url --base-url --test-mode"),
        ("worker", "--data-dir --database-url"),
        ("user add", "--email --password --admin --fullname --password-stdin --any-name"),
        ("user password", "--password --password-stdin"),
        ("org add", "--plan --fullname --owner --any-name"),
        ("org member add", "--role"),
        ("token create", "--role --scope --name --value --org --expires-in"),
        ("token revoke", "--value-stdin"),
        ("oauth app create", "--owner --org --redirect-uri --scope --secret"),
        ("oauth app delete", "--yes -y"),
        ("oauth app allow-exchange", "--off"),
        ("task retry", "--all"),
        ("storage prune", "--dry-run"),
        ("storage verify", "--all"),
        ("storage move", "--verify --dry-run"),
        ("login", "--token-stdin --browser --endpoint"),
        (
            "webhooks create",
            "--watch --url --job-id --domain --secret --secrets --secrets-file --org",
        ),
        (
            "webhooks update",
            "--watch --url --job-id --domain --secret --secrets --secrets-file --org",
        ),
        ("webhooks delete", "--yes -y --org"),
        ("webhooks deliveries", "--state --reason --scope --repo --since --until --limit --org"),
        ("webhooks recover", "--since --until --org"),
        ("webhooks listen", "--forward --watch --domain --secret --org"),
        ("webhooks verify", "--headers --body --secret --max-age"),
    ],
)
def test_flags_that_scripts_rely_on(words: str, flags: str) -> None:
    assert set(flags.split()) <= options(COMMANDS[words])


# They ask a hub that runs, as anybody could; the others work on its data.
ASKING = {words for words, command in COMMANDS.items() if "--endpoint" in options(command)}
ALONE = {"version", "webhooks verify"}
ANONYMOUS = {"login", "logout", "revoke", "jobs hardware"}


@pytest.mark.parametrize("words", sorted(set(COMMANDS) - ASKING - ALONE))
def test_every_command_can_be_pointed_to_a_hub_and_asked_for_json(words: str) -> None:
    assert {"--data-dir", "--database-url", "--config", "--json"} <= options(COMMANDS[words])


@pytest.mark.parametrize("words", sorted(ASKING))
def test_every_command_that_asks_a_hub_takes_who_asks_and_how_to_tell(words: str) -> None:
    as_somebody = set() if words in ANONYMOUS else {"--token"}

    assert {"--json", "--quiet", "-q"} | as_somebody <= options(COMMANDS[words])


@pytest.mark.parametrize("words", sorted(words for words in ASKING if words.endswith("delete")))
def test_every_deletion_asks_unless_it_is_told_not_to(words: str) -> None:
    assert {"--yes", "-y"} <= options(COMMANDS[words])


@pytest.mark.parametrize("words", sorted(ASKING | {"webhooks verify"}))
def test_every_value_of_an_option_has_a_name_of_its_own(words: str) -> None:
    """A reader learns from `--since WHEN` what `--since TEXT` would not tell."""
    for option in COMMANDS[words].params:
        # Help shows the choices where there are some.
        is_choice = get_origin(option.type_descriptor.annotation) is Literal
        is_flag = getattr(option, "is_flag", False)
        assert is_flag or is_choice or option.metavar, f"{words}: {option.name}"


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


@pytest.mark.parametrize("words", ["", "user", "org", "org member", "token", "task", "webhooks"])
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
