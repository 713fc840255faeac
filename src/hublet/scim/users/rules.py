"""What a user's attributes may be (interface 2.6)."""

from hublet.accounts.names import check_email, check_name
from hublet.scim.errors import invalid_value
from hublet.scim.records import Directory, ScimUser

MAX_EMAILS = 20
# As the public service has it; longer ones are no identifiers.
LONGEST_USER_NAME = 254
LONGEST_EXTERNAL_ID = 255
LONGEST_NAME = 100


def check(directory: Directory, user: ScimUser) -> None:
    """Refuse what breaks a rule, with a sentence that names the attribute."""
    if directory.managed:
        # The name of the account, and so of its repositories.
        check_name(user.user_name)
    _check_length("userName", user.user_name, longest=LONGEST_USER_NAME)
    check_external_id(user.external_id)
    _check_length("name.givenName", user.given_name, longest=LONGEST_NAME)
    _check_length("name.familyName", user.family_name, longest=LONGEST_NAME)
    if len(user.emails) > MAX_EMAILS:
        raise invalid_value(f"emails must have at most {MAX_EMAILS} items.")
    for address in user.emails:
        check_email(address.value)
        _check_length("emails.type", address.type, longest=LONGEST_NAME)


def check_external_id(value: str | None) -> None:
    _check_length("externalId", value, longest=LONGEST_EXTERNAL_ID)


def _check_length(attribute: str, value: str | None, *, longest: int) -> None:
    if value is not None and not 0 < len(value.strip()) <= len(value) <= longest:
        raise invalid_value(f"{attribute} must have 1 to {longest} characters.")
