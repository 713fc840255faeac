"""Ref rules of a push: a list of checks; the first that fails says why the ref cannot move."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from hublet.repos.errors import InvalidRefName
from hublet.repos.push.commands import CommandOutcome, Push, RefCommand
from hublet.repos.records import HEADS, MAIN, PULL_REQUESTS, TAGS
from hublet.repos.refs.service import check_ref_name

Refs = Mapping[str, str]


def check_commands(push: Push, refs: Refs) -> list[CommandOutcome]:
    """Return for each command whether its ref may move, given the current refs."""
    twice = {ref for ref, count in Counter(each.ref for each in push.commands).items() if count > 1}
    after = _names_after(push.commands, refs)
    outcomes = [
        CommandOutcome(
            command=command,
            refusal="it is named twice"
            if command.ref in twice
            else _first_objection(command, refs, after),
        )
        for command in push.commands
    ]
    if push.is_atomic and any(outcome.refusal for outcome in outcomes):
        reason = "the push is atomic, and another ref was refused"
        return [replace(outcome, refusal=outcome.refusal or reason) for outcome in outcomes]
    return outcomes


def refuse_all(push: Push, reason: str) -> list[CommandOutcome]:
    return [CommandOutcome(command=command, refusal=reason) for command in push.commands]


def _names_after(commands: Iterable[RefCommand], refs: Refs) -> set[str]:
    """Return the names of refs if all commands were carried out."""
    names = set(refs)
    for command in commands:
        (names.discard if command.new_sha is None else names.add)(command.ref)
    return names


def _first_objection(command: RefCommand, refs: Refs, after: set[str]) -> str | None:
    return (
        _outside_namespaces(command)
        or _invalid_name(command, refs)
        or _deletes_main(command)
        or _creates_or_deletes_pull_request(command, refs)
        or _moved_meanwhile(command, refs)
        or _conflicts_with_other(command, after)
    )


def _outside_namespaces(command: RefCommand) -> str | None:
    if command.ref.startswith((HEADS, TAGS, PULL_REQUESTS)):
        return None
    return "only refs/heads/, refs/tags/ and refs/pr/ can be pushed to"


def _invalid_name(command: RefCommand, refs: Refs) -> str | None:
    """Check the names of new branches and tags; pull requests are numbered by the hub."""
    for kind, start in (("branch", HEADS), ("tag", TAGS)):
        if command.ref.startswith(start) and command.ref not in refs:
            try:
                check_ref_name(kind, command.ref.removeprefix(start))
            except InvalidRefName as error:
                return error.message
    return None


def _deletes_main(command: RefCommand) -> str | None:
    return "main cannot be deleted" if (command.ref, command.new_sha) == (MAIN, None) else None


def _creates_or_deletes_pull_request(command: RefCommand, refs: Refs) -> str | None:
    if not command.ref.startswith(PULL_REQUESTS):
        return None
    if command.ref not in refs:
        return "there is no such pull request; open it on the hub first"
    return "a pull request is closed on the hub" if command.new_sha is None else None


def _moved_meanwhile(command: RefCommand, refs: Refs) -> str | None:
    current = refs.get(command.ref)
    if current == command.old_sha:
        return None if current or command.new_sha else "there is no such ref"
    return "fetch first: it has moved since" if current else "there is no such ref any more"


def _conflicts_with_other(command: RefCommand, after: set[str]) -> str | None:
    """Check that no ref is a folder of another one: git stores refs like files."""
    if command.new_sha is None:
        return None
    for name in after:
        if name.startswith(f"{command.ref}/") or command.ref.startswith(f"{name}/"):
            return f"{name} is in the way"
    return None
