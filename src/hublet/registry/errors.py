"""Errors of the registry, each with its code of the OCI Distribution specification.

HubError
├── InvalidRequest            400
│   ├── InvalidImageName      NAME_INVALID
│   ├── InvalidTag            TAG_INVALID
│   ├── InvalidDigest         DIGEST_INVALID
│   ├── DigestMismatch        DIGEST_INVALID
│   ├── InvalidUploadSize     SIZE_INVALID
│   ├── InvalidManifest       MANIFEST_INVALID
│   ├── MissingReferences     MANIFEST_BLOB_UNKNOWN
│   ├── InvalidPageSize       PAGINATION_NUMBER_INVALID
│   ├── InvalidCredential     (not of the specification)
│   ├── TooManyCredentials    (not of the specification)
│   ├── InvalidRetention      (not of the specification)
│   └── InvalidTokenForm      UNSUPPORTED
├── AuthenticationNeeded      401
│   └── RegistryTokenNeeded   UNAUTHORIZED
├── NotAllowed                403
│   └── RegistryAccessDenied  DENIED
├── NotFound                  404
│   ├── ImageNotFound         NAME_UNKNOWN
│   ├── ImageMoved            NAME_UNKNOWN
│   ├── BlobNotFound          BLOB_UNKNOWN
│   ├── ManifestNotFound      MANIFEST_UNKNOWN
│   ├── UploadNotFound        BLOB_UPLOAD_UNKNOWN
│   └── CredentialNotFound    (not of the specification)
├── TooLarge                  413
│   └── ManifestTooLarge      SIZE_INVALID
└── UploadRangeInvalid        416, RANGE_INVALID
"""

from collections.abc import Sequence
from typing import ClassVar

from hublet.core.errors import (
    AuthenticationNeeded,
    HubError,
    InvalidRequest,
    NotAllowed,
    NotFound,
    TooLarge,
)


class InvalidImageName(InvalidRequest):
    registry_code: ClassVar[str] = "NAME_INVALID"

    def __init__(self, rule: str) -> None:
        super().__init__(f"The name of the image is not valid: {rule}.")


class InvalidTag(InvalidRequest):
    registry_code: ClassVar[str] = "TAG_INVALID"

    def __init__(self, tag: str) -> None:
        super().__init__(
            f"{tag[:80]!r} is not a tag: it has 1 to 128 letters, digits, '_', '.' and '-', and "
            "does not begin with '.' or '-'."
        )


class InvalidDigest(InvalidRequest):
    registry_code: ClassVar[str] = "DIGEST_INVALID"

    def __init__(self, digest: str) -> None:
        super().__init__(
            f"{digest[:80]!r} is not a digest: it is sha256: with 64 or sha512: with 128 "
            "hexadecimal digits in lower case."
        )


class DigestMismatch(InvalidRequest):
    registry_code: ClassVar[str] = "DIGEST_INVALID"

    def __init__(self, *, expected: str, found: str) -> None:
        super().__init__(f"The content has the digest {found}, and the request says {expected}.")


class InvalidUploadSize(InvalidRequest):
    registry_code: ClassVar[str] = "SIZE_INVALID"


class InvalidManifest(InvalidRequest):
    registry_code: ClassVar[str] = "MANIFEST_INVALID"

    def __init__(self, reason: str) -> None:
        super().__init__(f"The manifest is not valid: {reason}.")


class MissingReferences(InvalidRequest):
    registry_code: ClassVar[str] = "MANIFEST_BLOB_UNKNOWN"

    def __init__(self, digests: Sequence[str]) -> None:
        super().__init__(
            f"The manifest names what was not pushed to this image: {', '.join(digests[:10])}."
        )


class InvalidPageSize(InvalidRequest):
    registry_code: ClassVar[str] = "PAGINATION_NUMBER_INVALID"

    def __init__(self) -> None:
        super().__init__("n is not valid: it is a number of tags, 0 or more.")


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


class InvalidRetention(InvalidRequest):
    def __init__(self, field: str, *, most: int) -> None:
        super().__init__(f"{field} must be a whole number from 1 to {most}, or null for no limit.")


class RegistryAccessDenied(NotAllowed):
    registry_code: ClassVar[str] = "DENIED"


class ImageNotFound(NotFound):
    registry_code: ClassVar[str] = "NAME_UNKNOWN"

    def __init__(self, name: str) -> None:
        super().__init__(f"This hub has no image {name}, or you may not see it.")


class ImageMoved(NotFound):
    """A former name is good enough to pull, and never to push or to delete."""

    registry_code: ClassVar[str] = "NAME_UNKNOWN"

    def __init__(self, name: str, *, new_name: str) -> None:
        super().__init__(f"{name} has another name now: push to {new_name}.")


class BlobNotFound(NotFound):
    registry_code: ClassVar[str] = "BLOB_UNKNOWN"

    def __init__(self, digest: str) -> None:
        super().__init__(f"The image has no blob {digest}.")


class ManifestNotFound(NotFound):
    registry_code: ClassVar[str] = "MANIFEST_UNKNOWN"

    def __init__(self, reference: str) -> None:
        super().__init__(f"The image has no manifest {reference}.")


class UploadNotFound(NotFound):
    registry_code: ClassVar[str] = "BLOB_UPLOAD_UNKNOWN"

    def __init__(self) -> None:
        super().__init__("There is no such upload: it is complete, was given up, or never began.")


class ManifestTooLarge(TooLarge):
    registry_code: ClassVar[str] = "SIZE_INVALID"

    def __init__(self, largest: int) -> None:
        super().__init__(f"A manifest has at most {largest} bytes.")


class UploadRangeInvalid(HubError):
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
