"""Access rules: who may do what with a repository, decided without I/O."""

from collections.abc import Mapping

from hublet.accounts.records import Role
from hublet.events import RepoSnapshot
from hublet.repos.errors import InvalidRepo
from hublet.repos.records import Gated, Reach, Repo, RepoType, Right, Visibility
from hublet.tokens.records import Caller, Scope

# What a member needs to be in the organization, and what the token needs to be good for.
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


def scope_for(right: Right) -> Scope:
    return _SCOPE[right]


def role_in_repo(
    repo: Repo | RepoSnapshot, *, organization: Role | None, group: Role | None
) -> Role | None:
    """Return the role that counts: in a resource group only its own members have one.

    An administrator of the organization keeps that role everywhere in it.
    """
    if repo.resource_group_id is None or organization is Role.admin:
        return organization
    return group if organization is not None else None


def may_as_member(repo: Repo, user_id: str, role: Role | None, right: Right) -> bool:
    """Tell whether the person may, whatever the token."""
    if repo.owner_id == user_id:
        return True
    if role is None:
        return False
    # A contributor does with the repositories they created what a writer does with all.
    own = repo.creator_id == user_id and role.covers(Role.contributor)
    return own or role.covers(_ROLE[right])


def token_reaches(repo: Repo, caller: Caller, right: Right) -> bool:
    """Tell whether the token may do in this repository what its holder may."""
    if caller.may(_SCOPE[right], on=repo.owner_id):
        return right is not Right.discuss or _is_selected_for_app(repo, caller)
    if right is Right.discuss:
        # Discussing needs to see the repository, and a scope that holds on everything.
        return False
    # Interface 5.3: contribute-repos reaches what the same app created.
    created = repo.created_with is not None and repo.created_with == caller.origin
    return created and caller.may(Scope.contribute_repos, on=repo.owner_id)


def _is_selected_for_app(repo: Repo, caller: Caller) -> bool:
    """Interface 5.3: an app comes to private things only of the person and of selected places."""
    if caller.token.app_id is None or is_open(repo, Right.see):
        return True
    places = {grant.entity_id for grant in caller.token.grants.scoped}
    return repo.owner_id in places | {caller.user_id}


def is_open(repo: Repo, right: Right) -> bool:
    """Tell whether anybody may, with or without a token."""
    if repo.visibility is not Visibility.public:
        return False
    return right is Right.see or (right is Right.read and repo.gated is None)


def private_reach_of(caller: Caller, roles: Mapping[str, Role]) -> Reach | None:
    """Return which private repositories a caller may see, for lists; None when there are none.

    `roles` are those in the caller's organizations, by the organization's id. This says of many
    repositories what `token_reaches` and `may_as_member` say of one.
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
    """Say what somebody who was not let in can do now."""
    if status == "pending":
        return "your request is waiting for its owner to decide."
    if status == "rejected":
        return "its owner rejected your request."
    if repo.gated is Gated.auto:
        return "accept its conditions on its page, then it opens at once."
    return "ask for access on its page; its owner decides."


def requested_visibility(*, visibility: str | None, private: bool | None) -> Visibility | None:
    """Return what a body asks for with either of two fields; None when it has neither."""
    if visibility is None:
        return None if private is None else _from_flag(private=private)
    asked = Visibility(visibility)
    if private is not None and private is (asked is Visibility.public):
        raise InvalidRepo("private and visibility contradict each other.")
    return asked


def _from_flag(*, private: bool) -> Visibility:
    return Visibility.private if private else Visibility.public


def check_visibility(type: RepoType, visibility: Visibility) -> None:  # noqa: A002 - as elsewhere
    if visibility is Visibility.protected and type is not RepoType.space:
        raise InvalidRepo("visibility protected is for spaces only.")
