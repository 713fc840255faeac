"""Errors of the registry, each with its code of the OCI Distribution specification.

HubError
├── RegistryError             every error below is one, too
├── InvalidRequest            400
│   ├── InvalidImageName      NAME_INVALID
│   ├── InvalidTag            TAG_INVALID
│   ├── InvalidDigest         DIGEST_INVALID
│   ├── DigestMismatch        DIGEST_INVALID
│   ├── InvalidUploadSize     SIZE_INVALID
│   ├── InvalidManifest       MANIFEST_INVALID
│   ├── MissingReferences     MANIFEST_BLOB_UNKNOWN
│   ├── InvalidPageSize       PAGINATION_NUMBER_INVALID
│   ├── InvalidTokenForm      UNSUPPORTED
│   ├── InvalidRetention      (not of the specification)
│   ├── InvalidCredential     (not of the specification)
│   └── TooManyCredentials    (not of the specification)
├── AuthenticationNeeded      401
│   └── RegistryTokenNeeded   UNAUTHORIZED
├── NotAllowed                403
│   └── RegistryAccessDenied  DENIED
├── NotFound                  404
│   ├── ImageNotFound         NAME_UNKNOWN
│   ├── ImageMoved            NAME_UNKNOWN
│   ├── BlobNotFound          BLOB_UNKNOWN
│   ├── ManifestNotFound      MANIFEST_UNKNOWN
│   ├── ReferenceNotFound     (not of the specification)
│   ├── UploadNotFound        BLOB_UPLOAD_UNKNOWN
│   └── CredentialNotFound    (not of the specification)
├── TooLarge                  413
│   └── ManifestTooLarge      SIZE_INVALID
├── ContentInUse              405, UNSUPPORTED
├── TooManyTags               414, TAG_INVALID
└── UploadRangeInvalid        416, RANGE_INVALID

Errors of other features that end a request at /v2/ get the code of their status (`error_body`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from hublet.core.errors import (
    AuthenticationNeeded,
    HubError,
    InvalidRequest,
    NotAllowed,
    NotFound,
    TooLarge,
)

# The codes of errors that have none of their own, by status.
_CODES = {
    401: "UNAUTHORIZED",
    403: "DENIED",
    404: "NAME_UNKNOWN",
    405: "UNSUPPORTED",
    413: "SIZE_INVALID",
    416: "RANGE_INVALID",
    429: "TOOMANYREQUESTS",
    503: "UNAVAILABLE",
}


def error_body(status: int, message: str, extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of an error in the form that the specification prescribes."""
    default = "UNKNOWN" if status >= 500 else "UNSUPPORTED"  # noqa: PLR2004 - a server's error
    code = extra.get("registry_code") or _CODES.get(status, default)
    return {"errors": [{"code": code, "message": message, "detail": extra.get("detail")}]}


class RegistryError(HubError):
    """An error with a code of the specification; `detail` is for programs."""

    registry_code: ClassVar[str]

    def __init__(
        self, message: str, *, headers: Mapping[str, str] | None = None, detail: Any = None
    ) -> None:
        extra = {"registry_code": self.registry_code, "detail": detail}
        super().__init__(message, headers=headers, extra=extra)


class InvalidImageName(RegistryError, InvalidRequest):
    registry_code: ClassVar[str] = "NAME_INVALID"

    def __init__(self, rule: str) -> None:
        super().__init__(f"The name of the image is not valid: {rule}.")


class InvalidTag(RegistryError, InvalidRequest):
    registry_code: ClassVar[str] = "TAG_INVALID"

    def __init__(self, tag: str) -> None:
        super().__init__(
            f"{tag[:80]!r} is not a tag: it has 1 to 128 letters, digits, '_', '.' and '-', and "
            "does not begin with '.' or '-'."
        )


class InvalidDigest(RegistryError, InvalidRequest):
    registry_code: ClassVar[str] = "DIGEST_INVALID"

    def __init__(self, digest: str) -> None:
        super().__init__(
            f"{digest[:80]!r} is not a digest: it is sha256: with 64 or sha512: with 128 "
            "hexadecimal digits in lower case."
        )


class DigestMismatch(RegistryError, InvalidRequest):
    registry_code: ClassVar[str] = "DIGEST_INVALID"

    def __init__(self, *, expected: str, found: str) -> None:
        super().__init__(f"The content has the digest {found}, and the request says {expected}.")


class InvalidUploadSize(RegistryError, InvalidRequest):
    registry_code: ClassVar[str] = "SIZE_INVALID"


class InvalidManifest(RegistryError, InvalidRequest):
    registry_code: ClassVar[str] = "MANIFEST_INVALID"

    def __init__(self, reason: str) -> None:
        super().__init__(f"The manifest is not valid: {reason}.")


class MissingReferences(RegistryError, InvalidRequest):
    registry_code: ClassVar[str] = "MANIFEST_BLOB_UNKNOWN"

    def __init__(self, digests: Sequence[str]) -> None:
        super().__init__(
            f"The manifest names what was not pushed to this image: {', '.join(digests[:10])}.",
            detail={"digests": list(digests[:10])},
        )


class InvalidPageSize(RegistryError, InvalidRequest):
    registry_code: ClassVar[str] = "PAGINATION_NUMBER_INVALID"

    def __init__(self) -> None:
        super().__init__("n is not valid: it is a number of tags, 0 or more.")


class InvalidRetention(InvalidRequest):
    def __init__(self, field: str, *, most: int) -> None:
        super().__init__(
            f"{field} must be a whole number from 1 to {most}, or nothing (null) for no limit."
        )


class InvalidTokenForm(InvalidRequest):
    """The form that asks for a token has no credentials that this hub takes."""

    registry_code: ClassVar[str] = "UNSUPPORTED"


class RegistryTokenNeeded(AuthenticationNeeded):
    """The challenge tells a client where to ask for a token, and for what."""

    registry_code: ClassVar[str] = "UNAUTHORIZED"

    def __init__(self, message: str, *, challenge: str) -> None:
        super().__init__(message)
        self.headers["WWW-Authenticate"] = challenge
        # Clients show it also where errors have the form of the hub.
        self.extra["errors"] = [{"code": self.registry_code, "message": message, "detail": None}]


class RegistryAccessDenied(RegistryError, NotAllowed):
    registry_code: ClassVar[str] = "DENIED"


class ImageNotFound(RegistryError, NotFound):
    registry_code: ClassVar[str] = "NAME_UNKNOWN"

    def __init__(self, name: str) -> None:
        super().__init__(f"This hub has no image {name}, or you may not see it.")


class ImageMoved(NotFound):
    """A former name is good enough to pull, and never to push or to delete."""

    registry_code: ClassVar[str] = "NAME_UNKNOWN"

    def __init__(self, name: str, *, new_name: str) -> None:
        super().__init__(f"{name} has another name now: push to {new_name}.")


class BlobNotFound(RegistryError, NotFound):
    registry_code: ClassVar[str] = "BLOB_UNKNOWN"

    def __init__(self, digest: str) -> None:
        super().__init__(f"The image has no blob {digest}.")


class ManifestNotFound(RegistryError, NotFound):
    registry_code: ClassVar[str] = "MANIFEST_UNKNOWN"

    def __init__(self, reference: str) -> None:
        super().__init__(f"The image has no manifest {reference}.")


class ReferenceNotFound(NotFound):
    """The same as a ManifestNotFound, in the API and on the pages of the hub."""

    def __init__(self, reference: str) -> None:
        super().__init__(f"The image has no manifest {reference}.")


class UploadNotFound(RegistryError, NotFound):
    registry_code: ClassVar[str] = "BLOB_UPLOAD_UNKNOWN"

    def __init__(self) -> None:
        super().__init__("There is no such upload: it is complete, was given up, or never began.")


class ManifestTooLarge(RegistryError, TooLarge):
    registry_code: ClassVar[str] = "SIZE_INVALID"

    def __init__(self, largest: int) -> None:
        super().__init__(f"A manifest has at most {largest} bytes.")


class UploadRangeInvalid(RegistryError):
    status = 416
    registry_code: ClassVar[str] = "RANGE_INVALID"


class InvalidCredential(InvalidRequest):
    def __init__(self, name: str, rule: str) -> None:
        super().__init__(f"{name}: it is not valid; {rule}.")


class TooManyCredentials(InvalidRequest):
    def __init__(self, most: int) -> None:
        super().__init__(f"There are credentials for {most} registries, and no more are kept.")


class CredentialNotFound(NotFound):
    def __init__(self, host: str) -> None:
        super().__init__(f"There are no credentials for {host}.")


class ContentInUse(RegistryError):
    """A manifest names it, and would be of no use without it."""

    status = 405
    registry_code: ClassVar[str] = "UNSUPPORTED"

    def __init__(self, digest: str, *, manifest: str) -> None:
        super().__init__(
            f"{digest} is a part of the manifest {manifest} of this image: delete that first."
        )


class TooManyTags(RegistryError):
    status = 414
    registry_code: ClassVar[str] = "TAG_INVALID"

    def __init__(self, most: int) -> None:
        super().__init__(f"A manifest gets at most {most} tags with one request.")
