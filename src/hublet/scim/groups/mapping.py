"""What a group is worth: its name says which role its members have, and where.

`acme:write` is the role write in the organization acme, `acme:research:admin` the role admin in
its resource group research. A group of any other name gives nothing.
"""

from collections.abc import Iterable

from hublet.accounts.records import Role
from hublet.core.light_dataclasses import dataclass

# Where a role holds: the name of a resource group, or None for the organization itself.
Place = str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    place: Place
    role: Role


def grant_of(display_name: str, *, organization: str) -> Grant | None:
    """Return what a group of this name gives in the organization; case does not count."""
    first, _, rest = display_name.casefold().partition(":")
    place, _, role = rest.rpartition(":")
    if first.strip() != organization.casefold() or role.strip() not in set(Role):
        return None
    if ":" in rest and not place.strip():
        return None
    return Grant(place=place.strip() or None, role=Role(role.strip()))


def highest(display_names: Iterable[str], *, organization: str) -> dict[Place, Role]:
    """Return the highest role that groups of these names give, in each place."""
    best: dict[Place, Role] = {}
    for name in display_names:
        grant = grant_of(name, organization=organization)
        if grant is not None and not (grant.place in best and best[grant.place].covers(grant.role)):
            best[grant.place] = grant.role
    return best
