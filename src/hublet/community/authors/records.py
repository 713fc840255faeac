"""What threads show of an account."""

from collections.abc import Mapping

from hublet.core.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user or an organization; one that is disabled still shows its name."""

    id: str
    name: str
    fullname: str
    # One of user, service-account and org.
    type: str


# By id, as many as one answer needs; an id that is not in it cannot be shown.
Accounts = Mapping[str, Account]
