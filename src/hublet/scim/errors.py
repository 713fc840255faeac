"""Errors of SCIM, in the form of RFC 7644, 3.12.

HubError
├── ScimRefusal  with the status of each instance
└── Conflict  409
    └── MemberProvisioned
"""

from collections.abc import Mapping
from typing import Any

from hublet.accounts.errors import EmailTaken, InvalidEmail, InvalidName, NameTaken
from hublet.core.errors import Conflict, HubError

ERROR_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:Error"
MEDIA_TYPE = "application/scim+json"

# The `scimType` of errors of other features.
_TYPES: dict[type[HubError], str] = {
    InvalidName: "invalidValue",
    InvalidEmail: "invalidValue",
    NameTaken: "uniqueness",
    EmailTaken: "uniqueness",
}


class ScimRefusal(HubError):
    """An error with a `scimType` of RFC 7644, or without one."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        scim_type: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        extra = {} if scim_type is None else {"scimType": scim_type}
        super().__init__(message, headers=headers, extra=extra)
        # Elsewhere the status belongs to the class; here to the instance.
        self.__dict__["status"] = status


class MemberProvisioned(Conflict):
    """For people in a browser: requests of providers never meet it."""

    def __init__(self, member: str, organization: str) -> None:
        super().__init__(
            f"An identity provider keeps {member} as a member of {organization}: change it there."
        )


def invalid_value(message: str) -> ScimRefusal:
    return ScimRefusal(400, message, scim_type="invalidValue")


def not_unique(message: str) -> ScimRefusal:
    return ScimRefusal(409, message, scim_type="uniqueness")


def to_refusal(error: HubError) -> HubError:
    """Add the `scimType` to an error of another feature."""
    if (scim_type := _TYPES.get(type(error))) is not None:
        error.extra["scimType"] = scim_type
    return error


def error_body(status: int, message: str, extra: Mapping[str, Any]) -> dict[str, Any]:
    scim_type = {"scimType": extra["scimType"]} if "scimType" in extra else {}
    # RFC 7644, 3.12: the status is a string.
    return {"schemas": [ERROR_SCHEMA], "status": str(status), **scim_type, "detail": message}
