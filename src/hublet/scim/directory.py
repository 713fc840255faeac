"""Rules of a whole directory: its lock, and which attributes are valid (interface 2.6)."""

from hublet.accounts.names import check_email, check_name
from hublet.core.database import Connection
from hublet.scim.errors import invalid_value
from hublet.scim.records import Directory, ProvisionedUser


async def lock(conn: Connection, directory: Directory) -> None:
    """Let nobody else read a user or group to change it, until the end of the transaction."""
    await conn.lock(f"scim of {directory.organization.id}")


MAX_EMAILS = 20
# As the public service has it; longer ones are no identifiers.
MAX_USER_NAME_LENGTH = 254
MAX_EXTERNAL_ID_LENGTH = 255
MAX_NAME_LENGTH = 100


def check_user(directory: Directory, user: ProvisionedUser) -> None:
    """Refuse what breaks a rule, with a sentence that names the attribute."""
    if directory.managed:
        # The name of the account, and so of its repositories.
        check_name(user.user_name)
    _check_length("userName", user.user_name, longest=MAX_USER_NAME_LENGTH)
    check_external_id(user.external_id)
    _check_length("name.givenName", user.given_name, longest=MAX_NAME_LENGTH)
    _check_length("name.familyName", user.family_name, longest=MAX_NAME_LENGTH)
    if len(user.emails) > MAX_EMAILS:
        raise invalid_value(f"emails must have at most {MAX_EMAILS} items.")
    for address in user.emails:
        check_email(address.value)
        _check_length("emails.type", address.type, longest=MAX_NAME_LENGTH)


def check_external_id(value: str | None) -> None:
    _check_length("externalId", value, longest=MAX_EXTERNAL_ID_LENGTH)


def _check_length(attribute: str, value: str | None, *, longest: int) -> None:
    if value is not None and not 0 < len(value.strip()) <= len(value) <= longest:
        raise invalid_value(f"{attribute} must have 1 to {longest} characters.")
