"""Rules of a whole directory: its lock, its clock, and valid attributes (interface 2.6)."""

from hublet.accounts.names import check_email, check_fullname, check_name
from hublet.core.clock import micros
from hublet.core.database import Connection
from hublet.scim.errors import invalid_value
from hublet.scim.records import Directory, ProvisionedUser

MAX_EMAILS = 20
# As the public service has it; longer ones are no identifiers.
MAX_USER_NAME_LENGTH = 254
MAX_EXTERNAL_ID_LENGTH = 255
# Of the given and the family name, and of the type of an e-mail address.
MAX_NAME_LENGTH = 100


async def lock(conn: Connection, directory: Directory) -> None:
    """Lock a directory until the transaction ends: a change reads it before it writes."""
    await conn.lock(f"scim of {directory.organization.id}")


def current_time() -> int:
    """Return now in whole milliseconds, as responses show it: filters compare with that."""
    return micros() // 1000 * 1000


def check_user(directory: Directory, user: ProvisionedUser) -> None:
    """Refuse an invalid attribute, with a sentence that names it."""
    if directory.managed:
        # It is the name of the account, and so of its repositories.
        check_name(user.user_name)
    check_length("userName", user.user_name, longest=MAX_USER_NAME_LENGTH)
    check_external_id(user.external_id)
    check_length("name.givenName", user.given_name, longest=MAX_NAME_LENGTH)
    check_length("name.familyName", user.family_name, longest=MAX_NAME_LENGTH)
    check_fullname(user.fullname)
    if len(user.emails) > MAX_EMAILS:
        raise invalid_value(f"emails must have at most {MAX_EMAILS} items.")
    for address in user.emails:
        check_email(address.value)
        check_length("emails.type", address.type, longest=MAX_NAME_LENGTH)


def check_external_id(value: str | None) -> None:
    check_length("externalId", value, longest=MAX_EXTERNAL_ID_LENGTH)


def check_length(attribute: str, value: str | None, *, longest: int) -> None:
    if value is not None and not 0 < len(value.strip()) <= len(value) <= longest:
        raise invalid_value(f"{attribute} must have 1 to {longest} characters.")
