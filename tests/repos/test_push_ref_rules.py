"""Which refs a push may move, case by case."""

import pytest

from hublet.repos.push.commands import CommandOutcome, Push, RefCommand
from hublet.repos.push.ref_rules import check_commands

OLD, NEW, OTHER = "1" * 40, "2" * 40, "3" * 40
MAIN = "refs/heads/main"
REFS = {MAIN: OLD, "refs/heads/a/b": OLD, "refs/pr/1": OLD, "refs/tags/v1": OLD}


def command(ref: str, old: str | None = None, new: str | None = NEW) -> RefCommand:
    return RefCommand(ref=ref, old_sha=old, new_sha=new)


def refusals(*commands: RefCommand, capabilities: frozenset[str] = frozenset()) -> list[str | None]:
    outcomes = check_commands(Push(commands=commands, capabilities=capabilities), REFS)
    assert [outcome.command for outcome in outcomes] == list(commands)
    return [outcome.refusal for outcome in outcomes]


@pytest.mark.parametrize(
    "moved",
    [
        pytest.param(command(MAIN, OLD), id="main moves"),
        pytest.param(command("refs/heads/c"), id="a branch is created"),
        pytest.param(command("refs/heads/a/b", OLD, None), id="a branch is deleted"),
        pytest.param(command("refs/heads/a/c"), id="a branch beside another one"),
        pytest.param(command("refs/heads/a/bc"), id="a branch whose name begins like another's"),
        pytest.param(command("refs/tags/v1", OLD), id="a tag is moved"),
        pytest.param(command("refs/tags/v2"), id="a tag is created"),
        pytest.param(command("refs/pr/1", OLD), id="a pull request gets a commit"),
        pytest.param(command(MAIN, OLD, OLD), id="nothing changes"),
        pytest.param(command("refs/heads/größe"), id="a name with other letters"),
    ],
)
def test_what_a_push_may_do(moved: RefCommand) -> None:
    assert refusals(moved) == [None]


NO_NAME = (
    "This is no name for a branch: it has no blanks, none of ~^:?*[\\ and '@{', no '..' and no "
    "'//', and no part of it begins with '.' or ends with '.' or '.lock'."
)
ELSEWHERE = "only refs/heads/, refs/tags/ and refs/pr/ can be pushed to"
MOVED = "fetch first: it has moved since"


@pytest.mark.parametrize(
    ("moved", "reason"),
    [
        pytest.param(command("refs/notes/x"), ELSEWHERE, id="another kind of ref"),
        pytest.param(command("HEAD"), ELSEWHERE, id="the head"),
        pytest.param(command("refs/heads/a..b"), NO_NAME, id="two dots"),
        pytest.param(
            command("refs/tags/"),
            "This is no name for a tag: it has 1 to 200 bytes.",
            id="no name at all",
        ),
        pytest.param(command("refs/heads/a.lock"), NO_NAME, id="a lock"),
        pytest.param(command("refs/heads/a\x85b"), NO_NAME, id="a control character"),
        pytest.param(command("refs/heads/a\nb"), NO_NAME, id="a line break"),
        pytest.param(command(MAIN, OLD, None), "main cannot be deleted", id="no more main"),
        pytest.param(
            command("refs/pr/2"),
            "there is no such pull request; open it on the hub first",
            id="a pull request that is not there",
        ),
        pytest.param(
            command("refs/pr/1", OLD, None),
            "a pull request is closed on the hub",
            id="no more pull request",
        ),
        pytest.param(command(MAIN, OTHER), MOVED, id="main has moved"),
        pytest.param(command(MAIN), MOVED, id="main is there already"),
        pytest.param(command("refs/heads/a/b", OTHER, None), MOVED, id="deleted too late"),
        pytest.param(
            command("refs/heads/c", OLD), "there is no such ref any more", id="it is gone"
        ),
        pytest.param(
            command("refs/heads/c", OLD, None), "there is no such ref any more", id="deleted twice"
        ),
        pytest.param(
            command("refs/heads/c", None, None), "there is no such ref", id="it never was"
        ),
        pytest.param(
            command("refs/heads/a"), "refs/heads/a/b is in the way", id="a branch lies in it"
        ),
        pytest.param(
            command("refs/heads/main/x"), f"{MAIN} is in the way", id="it lies in a branch"
        ),
    ],
)
def test_what_a_push_may_not_do(moved: RefCommand, reason: str) -> None:
    assert refusals(moved) == [reason]


def test_a_strange_name_that_is_there_already_may_move_and_go() -> None:
    refs = {"refs/heads/-x": OLD}
    for new in (NEW, None):
        push = Push(commands=(command("refs/heads/-x", OLD, new),), capabilities=frozenset())
        assert [outcome.refusal for outcome in check_commands(push, refs)] == [None]


def test_a_branch_may_take_the_place_of_what_the_same_push_deletes() -> None:
    commands = [command("refs/heads/a/b", OLD, None), command("refs/heads/a")]

    assert refusals(*commands) == [None, None]


def test_two_new_branches_can_be_in_each_others_way() -> None:
    commands = [command("refs/heads/x"), command("refs/heads/x/y")]

    assert refusals(*commands) == ["refs/heads/x/y is in the way", "refs/heads/x is in the way"]


def test_no_ref_is_moved_twice() -> None:
    commands = [command(MAIN, OLD), command(MAIN, OLD, OTHER), command("refs/heads/c")]

    assert refusals(*commands) == ["it is named twice", "it is named twice", None]


def test_an_atomic_push_is_refused_as_a_whole_and_says_what_is_to_blame() -> None:
    commands = (command(MAIN, OTHER), command("refs/heads/c"))

    assert refusals(*commands, capabilities=frozenset({"atomic"})) == [
        MOVED,
        "the push is atomic, and another ref was refused",
    ]


def test_an_atomic_push_without_fault_moves_everything() -> None:
    push = Push(commands=(command(MAIN, OLD),), capabilities=frozenset({"atomic"}))

    assert check_commands(push, REFS) == [CommandOutcome(command=command(MAIN, OLD))]
