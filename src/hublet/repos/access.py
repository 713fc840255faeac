"""Access rules of repositories, decided without I/O: roles, scopes of tokens, visibility."""

from collections.abc import Mapping

from hublet.accounts.access import effective_role
from hublet.accounts.records import Role
from hublet.events import RepoSnapshot
from hublet.repos.errors import InvalidRepo
from hublet.repos.records import Gated, Reach, Repo, RepoGuard, RepoType, Right, Visibility
from hublet.tokens.format import TokenKind
from hublet.tokens.records import Caller, Scope

# The role that a member needs for each right, and the scope that the token needs.
_ROLE = {
    Right.see: Role.read,
    Right.read: Role.read,
    Right.discuss: Role.read,
    Right.write: Role.write,
    Right.manage: Role.write,
}
_SCOPE = {
    Right.see: Scope.read_repos,
    Right.read: Scope.read_repos,
    Right.discuss: Scope.write_discussions,
    Right.write: Scope.write_repos,
    Right.manage: Scope.manage_repos,
}


_PUBLISHER_RIGHTS = frozenset({Right.see, Right.read, Right.write})


def scope_for(right: Right) -> Scope:
    return _SCOPE[right]


def role_in_repo(
    repo: Repo | RepoGuard | RepoSnapshot, *, organization: Role | None, group: Role | None
) -> Role | None:
    """Return the role that counts for a repository, from both roles of a user in its owner."""
    return effective_role(
        organization=organization, resource_group_id=repo.resource_group_id, resource_group=group
    )


def may_as_member(repo: Repo | RepoGuard, user_id: str, role: Role | None, right: Right) -> bool:
    """Tell whether a user has this right as owner or member, whatever the token."""
    if repo.owner_id == user_id:
        return True
    if role is None:
        return False
    # A contributor is a writer of the repositories that they created.
    own = repo.creator_id == user_id and role.covers(Role.contributor)
    return own or role.covers(_ROLE[right])


def publishes(repo: Repo | RepoGuard, caller: Caller, right: Right) -> bool:
    """Tell whether the caller is a trusted publisher of this repository: it reads and writes, no more."""
    is_its = caller.published_repo_id == _id_of(repo) and right in _PUBLISHER_RIGHTS
    return is_its and not caller.is_blocked(repo.owner_id)


def _is_token_of(repo: Repo | RepoGuard, caller: Caller, right: Right) -> bool:
    """Tell whether the caller's token was made for this repository and this right."""
    if caller.token.kind is not TokenKind.jwt or caller.is_blocked(repo.owner_id):
        return False
    return caller.may(_SCOPE[right], on=_id_of(repo))


def _id_of(repo: Repo | RepoGuard) -> str:
    return repo.repo_id if isinstance(repo, RepoGuard) else repo.id


def token_reaches(repo: Repo | RepoGuard, caller: Caller, right: Right) -> bool:
    """Tell whether the scopes of the caller's token cover this right to the repository."""
    if publishes(repo, caller, right) or _is_token_of(repo, caller, right):
        return True
    if caller.may(_SCOPE[right], on=repo.owner_id):
        return right is not Right.discuss or _is_selected_for_app(repo, caller)
    if right is Right.discuss:
        # A scope that covers only what the app created is not enough to discuss.
        return False
    # Interface 5.3: contribute-repos reaches what the same app created.
    created = repo.created_with is not None and repo.created_with == caller.origin
    return created and caller.may(Scope.contribute_repos, on=repo.owner_id)


def _is_selected_for_app(repo: Repo | RepoGuard, caller: Caller) -> bool:
    """Interface 5.3: an app reaches private repositories only of its user and of selected owners."""
    if caller.token.app_id is None or is_open(repo, Right.see):
        return True
    selected = {grant.entity_id for grant in caller.token.grants.scoped}
    return repo.owner_id in selected | {caller.user_id}


def is_open(repo: Repo | RepoGuard, right: Right) -> bool:
    """Tell whether everybody has this right, with or without a token."""
    if repo.visibility is not Visibility.public:
        return False
    return right is Right.see or (right is Right.read and repo.gated is None)


def lets_pass(guard: RepoGuard, caller: Caller | None, right: Right) -> bool:
    """Tell whether a caller who needs this right may know that the repository exists."""
    if is_open(guard, Right.see):
        return True
    # Interface 5.3: write-discussions alone is enough to discuss, in private repositories too.
    enough = (Right.see, Right.discuss) if right is Right.discuss else (Right.see,)
    role = role_in_repo(guard, organization=guard.organization_role, group=guard.group_role)
    if caller is not None and publishes(guard, caller, Right.see):
        return True
    return caller is not None and any(
        token_reaches(guard, caller, each) and may_as_member(guard, caller.user_id, role, each)
        for each in enough
    )


def private_reach_of(caller: Caller, roles: Mapping[str, Role]) -> Reach | None:
    """Return the private repositories that a caller may see in lists; None: none at all.

    `roles` are the caller's, by the id of the organization. This is the rule of `token_reaches`
    and `may_as_member` for many repositories at once.
    """
    owners = [caller.user_id, *roles]
    readable = [owner for owner in owners if caller.may(Scope.read_repos, on=owner)]
    created = [owner for owner in owners if caller.may(Scope.contribute_repos, on=owner)]
    if not readable and not created:
        return None
    return Reach(
        user_id=caller.user_id,
        readable=tuple(readable),
        where_created=tuple(created),
        created_with=caller.origin,
        administered=tuple(owner for owner, role in roles.items() if role is Role.admin),
    )


def gate_reason(repo: Repo, status: str | None) -> str:
    """Return the sentence for a user without access to a gated repository."""
    if status == "pending":
        return "your request is waiting for its owner to decide."
    if status == "rejected":
        return "its owner rejected your request."
    if repo.gated is Gated.auto:
        return "accept its conditions on its page, then it opens at once."
    return "ask for access on its page; its owner decides."


def requested_visibility(*, visibility: str | None, private: bool | None) -> Visibility | None:
    """Return the visibility that a body sets with either of two fields; None: with neither."""
    if visibility is None:
        return None if private is None else _from_flag(private=private)
    requested = Visibility(visibility)
    if private is not None and private is (requested is Visibility.public):
        raise InvalidRepo("private and visibility contradict each other.")
    return requested


def _from_flag(*, private: bool) -> Visibility:
    return Visibility.private if private else Visibility.public


def check_visibility(type: RepoType, visibility: Visibility) -> None:  # noqa: A002 - as elsewhere
    if visibility is Visibility.protected and type is not RepoType.space:
        raise InvalidRepo("visibility protected is for spaces only.")
