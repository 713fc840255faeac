"""Who may do what with a repository, as a table."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hublet.accounts.records import Owner, OwnerType, Role
from hublet.repos import access
from hublet.repos.records import Gated, Reach, Repo, RepoType, Right, Visibility
from hublet.tokens.format import TokenKind
from hublet.tokens.records import (
    Caller,
    Grants,
    Scope,
    ScopedGrant,
    TokenRecord,
    TokenRole,
    scopes_of,
)

NOW = datetime(2026, 11, 15, tzinfo=UTC)
ADA, ACME, GROUP, APP = "ada" * 8, "acme" * 6, "grp1" * 6, "app1" * 6

REPO = Repo(
    id="repo" * 6,
    type=RepoType.model,
    owner=Owner(id=ACME, name="acme", type=OwnerType.organization),
    name="engine",
    visibility=Visibility.private,
    creator_id="somebody else",
    created_at=NOW,
    updated_at=NOW,
)
EVERY_RIGHT = set(Right)
READING = {Right.see, Right.read, Right.discuss}


def a_caller(
    role: TokenRole = TokenRole.fine_grained,
    *everywhere: Scope,
    scoped: dict[str, set[Scope]] | None = None,
    token_id: str = APP,
) -> Caller:
    """A caller called ada; scopes are those of a fine-grained token."""
    grants = Grants(
        everywhere=frozenset(everywhere),
        scoped=tuple(
            ScopedGrant(
                entity_id=owner, entity_type="org", entity_name="x", scopes=frozenset(scopes)
            )
            for owner, scopes in (scoped or {}).items()
        ),
    )
    token = TokenRecord(
        id=token_id,
        kind=TokenKind.access,
        user_id=ADA,
        name="token",
        role=role,
        grants=grants,
        hint="hf_…",
        created_at=NOW,
    )
    return Caller(
        user_id=ADA, user_name="ada", is_admin=False, token=token, scopes=scopes_of(role, grants)
    )


@pytest.mark.parametrize(
    ("visibility", "gated", "rights"),
    [
        pytest.param(Visibility.public, None, {Right.see, Right.read}, id="public"),
        pytest.param(Visibility.public, Gated.auto, {Right.see}, id="behind an automatic gate"),
        pytest.param(Visibility.public, Gated.manual, {Right.see}, id="behind a gate"),
        pytest.param(Visibility.private, None, set[Right](), id="private"),
        pytest.param(Visibility.private, Gated.auto, set[Right](), id="private and gated"),
        pytest.param(Visibility.protected, None, set[Right](), id="protected"),
    ],
)
def test_what_anybody_may(visibility: Visibility, gated: Gated | None, rights: set[Right]) -> None:
    repo = replace(REPO, visibility=visibility, gated=gated)

    assert {right for right in Right if access.is_open(repo, right)} == rights


@pytest.mark.parametrize(
    ("role", "rights"),
    [
        pytest.param(None, set[Right](), id="a stranger"),
        pytest.param(Role.read, READING, id="a reader"),
        pytest.param(Role.contributor, READING, id="a contributor, with another's repository"),
        pytest.param(Role.write, EVERY_RIGHT, id="a writer"),
        pytest.param(Role.admin, EVERY_RIGHT, id="an administrator"),
    ],
)
def test_what_a_role_may(role: Role | None, rights: set[Right]) -> None:
    assert {right for right in Right if access.may_as_member(REPO, ADA, role, right)} == rights


@pytest.mark.parametrize(
    ("role", "rights"),
    [
        pytest.param(None, set[Right](), id="who left"),
        pytest.param(Role.read, READING, id="who only reads now"),
        pytest.param(Role.contributor, EVERY_RIGHT, id="a contributor"),
        pytest.param(Role.write, EVERY_RIGHT, id="a writer"),
    ],
)
def test_what_somebody_may_with_what_they_created(role: Role | None, rights: set[Right]) -> None:
    repo = replace(REPO, creator_id=ADA)

    assert {right for right in Right if access.may_as_member(repo, ADA, role, right)} == rights


def test_an_owner_may_everything() -> None:
    repo = replace(REPO, owner=Owner(id=ADA, name="ada", type=OwnerType.user))

    assert all(access.may_as_member(repo, ADA, None, right) for right in Right)


@pytest.mark.parametrize(
    ("in_group", "organization", "group", "expected"),
    [
        pytest.param(False, Role.write, None, Role.write, id="outside of every group"),
        pytest.param(False, None, None, None, id="a stranger"),
        pytest.param(True, Role.write, None, None, id="a writer who is not in the group"),
        pytest.param(True, Role.read, Role.write, Role.write, id="more in the group"),
        pytest.param(True, Role.write, Role.read, Role.read, id="less in the group"),
        pytest.param(True, Role.admin, None, Role.admin, id="an administrator"),
        pytest.param(True, Role.admin, Role.read, Role.admin, id="an administrator in the group"),
        pytest.param(True, None, Role.write, None, id="in the group, not in the organization"),
    ],
)
def test_which_role_counts(
    *, in_group: bool, organization: Role | None, group: Role | None, expected: Role | None
) -> None:
    repo = replace(REPO, resource_group_id=GROUP if in_group else None)

    assert access.role_in_repo(repo, organization=organization, group=group) is expected


FULL, READ = TokenRole.write, TokenRole.read
FINE = TokenRole.fine_grained
CREATED = {Right.see, Right.read, Right.write, Right.manage}
TOKENS = [
    pytest.param(a_caller(FULL), EVERY_RIGHT, id="a write token"),
    pytest.param(a_caller(READ), {Right.see, Right.read}, id="a read token"),
    pytest.param(a_caller(FINE, Scope.read_repos), {Right.see, Right.read}, id="read-repos"),
    pytest.param(
        a_caller(FINE, Scope.write_repos), {Right.see, Right.read, Right.write}, id="write-repos"
    ),
    pytest.param(a_caller(FINE, Scope.manage_repos), CREATED, id="manage-repos"),
    pytest.param(a_caller(FINE, Scope.write_discussions), {Right.discuss}, id="discussions"),
    pytest.param(a_caller(FINE, Scope.gated_repos), set[Right](), id="gated-repos"),
    pytest.param(a_caller(FINE, Scope.contribute_repos), set[Right](), id="contribute-repos"),
    pytest.param(a_caller(FINE, Scope.webhooks), set[Right](), id="another scope"),
    pytest.param(
        a_caller(FINE, scoped={ACME: {Scope.write_repos}}),
        {Right.see, Right.read, Right.write},
        id="write-repos for this owner",
    ),
    pytest.param(
        a_caller(FINE, scoped={ADA: {Scope.manage_repos}}),
        set[Right](),
        id="manage-repos for another owner",
    ),
    pytest.param(
        a_caller(FINE, Scope.read_repos, scoped={ADA: {Scope.manage_repos}}),
        {Right.see, Right.read},
        id="less here, more elsewhere",
    ),
]


@pytest.mark.parametrize(("caller", "rights"), TOKENS)
def test_what_a_token_reaches(caller: Caller, rights: set[Right]) -> None:
    assert {right for right in Right if access.token_reaches(REPO, caller, right)} == rights


@pytest.mark.parametrize(
    ("caller", "rights"),
    [
        pytest.param(a_caller(FINE, Scope.contribute_repos), CREATED, id="the same app"),
        pytest.param(
            a_caller(FINE, Scope.contribute_repos, token_id="other"), set[Right](), id="another app"
        ),
        pytest.param(a_caller(FINE, Scope.webhooks), set[Right](), id="without the scope"),
        pytest.param(
            a_caller(FINE, scoped={ACME: {Scope.contribute_repos}}), CREATED, id="for this owner"
        ),
        pytest.param(
            a_caller(FINE, scoped={ADA: {Scope.contribute_repos}}),
            set[Right](),
            id="for another owner",
        ),
    ],
)
def test_contribute_repos_reaches_what_the_same_app_created(
    caller: Caller, rights: set[Right]
) -> None:
    repo = replace(REPO, created_with=APP)

    assert {right for right in Right if access.token_reaches(repo, caller, right)} == rights


def test_nothing_created_by_nothing_in_particular_is_reached() -> None:
    caller = a_caller(FINE, Scope.contribute_repos)

    assert not access.token_reaches(replace(REPO, created_with=None), caller, Right.see)


@pytest.mark.parametrize(
    ("caller", "readable", "where_created"),
    [
        pytest.param(a_caller(FULL), (ADA, ACME), (ADA, ACME), id="a write token"),
        pytest.param(a_caller(READ), (ADA, ACME), (), id="a read token"),
        pytest.param(
            a_caller(FINE, scoped={ACME: {Scope.read_repos}}), (ACME,), (), id="one owner only"
        ),
        pytest.param(
            a_caller(FINE, scoped={ADA: {Scope.contribute_repos}, "other": {Scope.read_repos}}),
            (),
            (ADA,),
            id="an organization that one does not belong to",
        ),
    ],
)
def test_what_lists_reach(
    caller: Caller, readable: tuple[str, ...], where_created: tuple[str, ...]
) -> None:
    assert access.private_reach_of(caller, {ACME: Role.admin}) == Reach(
        user_id=ADA,
        readable=readable,
        where_created=where_created,
        created_with=APP,
        administered=(ACME,),
    )


def test_only_administrators_reach_past_groups() -> None:
    reach = access.private_reach_of(
        a_caller(FULL), {ACME: Role.write, "b": Role.admin, "c": Role.read}
    )

    assert reach is not None
    assert reach.administered == ("b",)


@pytest.mark.parametrize("scope", [Scope.gated_repos, Scope.webhooks, Scope.write_discussions])
def test_without_a_scope_lists_reach_nothing(scope: Scope) -> None:
    assert access.private_reach_of(a_caller(FINE, scope), {ACME: Role.admin}) is None


@pytest.mark.parametrize(
    ("gated", "status", "sentence"),
    [
        (Gated.manual, "pending", "your request is waiting for its owner to decide."),
        (Gated.manual, "rejected", "its owner rejected your request."),
        (Gated.manual, None, "ask for access on its page; its owner decides."),
        (Gated.auto, None, "accept its conditions on its page, then it opens at once."),
        (Gated.auto, "rejected", "its owner rejected your request."),
    ],
)
def test_who_was_not_let_in_hears_what_to_do(
    gated: Gated, status: str | None, sentence: str
) -> None:
    assert access.gate_reason(replace(REPO, gated=gated), status) == sentence


def test_every_right_has_its_scope() -> None:
    assert {right: access.scope_for(right) for right in Right} == {
        Right.see: Scope.read_repos,
        Right.read: Scope.read_repos,
        Right.discuss: Scope.write_discussions,
        Right.write: Scope.write_repos,
        Right.manage: Scope.manage_repos,
    }
