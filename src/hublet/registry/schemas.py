"""Wire shapes of the registry: errors, lists of tags, credentials, and the headers of its responses."""

from typing import Annotated, Any, Self

from pydantic import Field

from hublet.core.schema import Schema, Timestamp
from hublet.registry import records

Responses = dict[int | str, dict[str, Any]]


class RegistryErrorItem(Schema):
    # A word of the specification, such as BLOB_UNKNOWN.
    code: str
    message: str
    detail: Any = None


class RegistryErrors(Schema):
    """The form of errors at /v2/ (OCI Distribution specification)."""

    errors: list[RegistryErrorItem]


class RegistryHere(Schema):
    """An empty object: the status says it."""


class RegistryTags(Schema):
    name: str
    tags: list[str]


class RegistryCredentialCard(Schema):
    """Credentials for a registry; the secret is never shown."""

    host: str
    username: str
    createdAt: Timestamp

    @classmethod
    def of(cls, credential: records.RegistryCredential) -> Self:
        return cls(
            host=credential.host, username=credential.username, createdAt=credential.created_at
        )


class SetRegistryCredential(Schema):
    username: Annotated[str, Field(min_length=1, max_length=4096)]
    secret: Annotated[
        str, Field(min_length=1, max_length=4096, description="A password or a token.")
    ]


_SENTENCES = {
    400: "The request breaks a rule; `code` is a word of the OCI Distribution specification.",
    401: "There is no token, or it is not good for this; the challenge says where to get one.",
    403: "The caller may not do this, or the owner has no room left.",
    404: "There is no such image, or nothing of this name in it.",
    405: "A manifest needs it: delete that first.",
    409: "The repository cannot be created.",
    413: "It is larger than this hub takes.",
    414: "There are too many tags.",
    416: "The range lies outside, or does not follow what has arrived.",
    429: "There were too many requests; try again after the time in `Retry-After`.",
    503: "A part of the hub cannot answer now; the same request may succeed later.",
}
_TEXT = {"type": "string"}
_BINARY = {"*/*": {"schema": {"type": "string", "format": "binary"}}}


def error_responses(*statuses: int) -> Responses:
    """Describe the errors that any operation of the registry has, and these."""
    shared = {400, 401, 403, 404, 429, 503}
    return {
        status: {"model": RegistryErrors, "description": _SENTENCES[status]}
        for status in sorted(shared.union(statuses))
    }


def headers_of(*required: str, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """Describe the headers of a response by their names."""
    return {
        **{name: {"required": True, "schema": _TEXT} for name in required},
        **{name: {"schema": _TEXT} for name in optional},
    }


_DIGEST = "Docker-Content-Digest"
MANIFEST: Responses = {
    200: {
        "description": "The manifest, with its own media type.",
        "headers": headers_of(_DIGEST, "ETag"),
        "content": _BINARY,
    },
    304: {"description": "The digest in `If-None-Match` is current."},
}
MANIFEST_PUSHED: Responses = {
    201: {
        "description": "The manifest is stored.",
        "headers": headers_of("Location", _DIGEST, optional=("OCI-Subject", "OCI-Tag")),
    }
}
TAGS: Responses = {
    200: {"description": "Tags.", "model": RegistryTags, "headers": headers_of(optional=("Link",))}
}
REFERRERS: Responses = {
    200: {
        "description": "An image index of the manifests.",
        "headers": headers_of(optional=("Link", "OCI-Filters-Applied")),
        "content": {"application/vnd.oci.image.index.v1+json": {}},
    }
}
BLOB: Responses = {
    200: {"description": "The blob.", "headers": headers_of(_DIGEST), "content": _BINARY},
    206: {
        "description": "The part that `Range` asks for.",
        "headers": headers_of(_DIGEST, "Content-Range"),
        "content": _BINARY,
    },
    302: {
        "description": "A large blob can be read at `Location`, in the object storage, for an hour.",
        "headers": headers_of("Location"),
    },
    304: {"description": "The client has it."},
}
BLOB_STORED: Responses = {
    201: {
        "description": "The image has the blob, at `Location`.",
        "headers": headers_of("Location", _DIGEST),
    }
}
SESSION = headers_of("Location", "Range", "Docker-Upload-UUID")
TAKES_BYTES: dict[str, Any] = {"requestBody": {"required": False, "content": _BINARY}}
