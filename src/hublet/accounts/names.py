"""Validation and comparison keys of names and e-mail addresses."""

import re

from hublet.accounts.errors import InvalidEmail, InvalidName
from hublet.core.schema import CONTROL_CHARACTERS

MIN_LENGTH = 2
MAX_LENGTH = 42
MAX_EMAIL_LENGTH = 254
# Of names that an operator imports although they break the rules.
MAX_IMPORTED_LENGTH = 96

# A name is the first segment of an address, `/ada` or `/ada/engine`, and in the API it stands
# where some collections have words of their own, as in `/api/jobs/hardware`. Words that the hub
# uses there, or may use one day, are reserved. `admin` is free: it is the name of the first
# administrator.
_RESERVED = """
about accounts activity agent-harnesses agents api apps assets auth authorize avatars billing
blob blog buckets cas chat collections commits consent contact containers count credentials
daily-papers dashboard datasets device discussions docs download endpoints enterprise explore
export favicon front git hardware health healthz help hublet inbox inference inference-api
inference-endpoints inference-providers jobs join kernels languages learn lfs likes list login
logout mcp me metrics models move new notifications oauth oidc openapi organizations orgs papers
password ping posts pricing privacy raw readyz refs register repos repositories reset-password
resolve resource-groups revoke robots saml scheduled-jobs scim search security semantic-search
service-accounts sessions settings sign-in sign-up signin signout signup sitemap spaces
sql-console ssh static status storage support tags tasks telemetry templates terms
terms-of-service tokens tree trending upload uploads users v1 v2 validate-yaml version watch
webhooks welcome well-known whoami whoami-v2 zero-gpu
"""
RESERVED = frozenset(_RESERVED.split())

_LETTERS = re.compile(r"[A-Za-z0-9-]*")
_IMPORTED_LETTERS = re.compile(r"(?!\.)[A-Za-z0-9._-]+(?<!\.)")
_OBJECT_ID = re.compile(r"[0-9A-Fa-f]{24}")

# Only the plain form of RFC 5321: quotes, commas and brackets mean something to mail programs.
_LOCAL = r"(?=.{1,64}@)[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_EMAIL = re.compile(rf"{_LOCAL}@(localhost|({_LABEL}\.)+{_LABEL})")


def check_name(name: str) -> None:
    """Refuse with InvalidName, which says the rule, what cannot name a user or organization."""
    if not MIN_LENGTH <= len(name) <= MAX_LENGTH:
        raise InvalidName(f"A name has {MIN_LENGTH} to {MAX_LENGTH} characters.")
    if _LETTERS.fullmatch(name) is None:
        raise InvalidName("A name has only the letters a to z, digits and hyphens.")
    if name.startswith("-") or name.endswith("-") or "--" in name:
        raise InvalidName("A name has single hyphens, and none at its start or end.")
    if name.isdigit():
        raise InvalidName("A name does not consist of digits only.")
    if _OBJECT_ID.fullmatch(name):
        raise InvalidName("A name is not 24 hexadecimal digits, which would read as an id.")
    if name_key(name) in RESERVED:
        raise InvalidName(f"The name {name} is reserved.")


def check_imported_name(name: str) -> None:
    """Refuse with InvalidName only what no address could hold, or what has a meaning there."""
    if not 1 <= len(name) <= MAX_IMPORTED_LENGTH or _IMPORTED_LETTERS.fullmatch(name) is None:
        raise InvalidName(
            f"A name has 1 to {MAX_IMPORTED_LENGTH} letters a to z, digits, hyphens, underscores "
            "and dots, and a dot neither at its start nor at its end."
        )
    if _OBJECT_ID.fullmatch(name):
        raise InvalidName("A name is not 24 hexadecimal digits, which would read as an id.")
    if name_key(name) in RESERVED:
        raise InvalidName(f"The name {name} is reserved.")


def name_key(name: str) -> str:
    """Return the form in which two names are the same name."""
    return name.casefold()


def check_fullname(fullname: str) -> None:
    if CONTROL_CHARACTERS.search(fullname):
        raise InvalidName("A full name must be a single line without control characters.")


def check_email(address: str) -> None:
    if len(address) > MAX_EMAIL_LENGTH:
        raise InvalidEmail(f"An email address has at most {MAX_EMAIL_LENGTH} characters.")
    if _EMAIL.fullmatch(address) is None:
        raise InvalidEmail("An email address is written name@example.com, in ASCII.")


def email_key(address: str) -> str:
    """Return the form in which two addresses are the same address."""
    return address.lower()
