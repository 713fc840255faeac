"""Invitations: users without an account, who join once somebody has their address."""

from hublet.accounts.errors import InvalidEmail
from hublet.accounts.names import check_email
from hublet.core.database import Reader
from hublet.scim.errors import not_unique
from hublet.scim.records import Directory, ProvisionedUser, comparison_key
from hublet.scim.users import store


def addresses_of(user: ProvisionedUser) -> list[str]:
    """Return where the person can be reached, the primary address first.

    Providers often have one in userName too.
    """
    ordered = sorted(user.emails, key=lambda each: not each.primary)
    addresses = [address.value for address in ordered]
    try:
        check_email(user.user_name)
    except InvalidEmail:
        return addresses
    return [*addresses, user.user_name]


async def check_only_invitation(
    conn: Reader, directory: Directory, user: ProvisionedUser, *, before: ProvisionedUser | None
) -> None:
    """Refuse a second user who is to wait for the same address: only one of them could join.

    What was there before is no reason to refuse a change of something else.
    """
    if not user.active:
        return
    addresses = {comparison_key(each) for each in addresses_of(user)}
    if before is not None and before.active:
        addresses -= {comparison_key(each) for each in addresses_of(before)}
    if await store.is_invited(conn, directory, addresses, besides=user.id):
        raise not_unique(
            "emails: another user of this directory waits for an account with the address."
        )
