"""Who may still see what is in an inbox: a repository may have become private, a role may end."""

from hublet.accounts.records import Role
from hublet.core.database import Row
from hublet.events import RepoSnapshot
from hublet.repos.access import role_in_repo

# For a statement in which repositories are called `r` and the user's id is the first value.
REPO = """
    r.id AS repo_id, r.type AS repo_type, r.name AS repo_name, r.owner_id AS repo_owner_id,
    r.visibility, r.resource_group_id, m.role AS organization_role, g.role AS group_role
"""
ROLES = """
    LEFT JOIN memberships m ON m.organization_id = r.owner_id AND m.user_id = $1
    LEFT JOIN resource_group_members g
        ON g.resource_group_id = r.resource_group_id AND g.user_id = $1
"""


def may_see(row: Row, user_id: str) -> bool:
    """Tell of a row with a repository what `repos.service.who_may_see` tells of a user."""
    if row["visibility"] == "public" or row["repo_owner_id"] == user_id:
        return True
    repo = RepoSnapshot(
        id=row["repo_id"],
        type=row["repo_type"],
        name=row["repo_name"],
        owner_id=row["repo_owner_id"],
        private=True,
        resource_group_id=row["resource_group_id"],
    )
    organization, group = _role(row["organization_role"]), _role(row["group_role"])
    return role_in_repo(repo, organization=organization, group=group) is not None


def _role(name: str | None) -> Role | None:
    return Role(name) if name else None
