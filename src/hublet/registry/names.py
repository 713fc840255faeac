"""Names of images, tags and digests, as the OCI Distribution specification spells them."""

import re

from hublet.registry.errors import InvalidDigest, InvalidImageName, InvalidTag
from hublet.registry.records import ImageName

MAX_NAME_LENGTH = 255

_COMPONENT = "[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*"
_NAME = re.compile(f"{_COMPONENT}(?:/{_COMPONENT})*")
_TAG = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")


def parse_image_name(text: str) -> ImageName:
    """Return the image that a name stands for: `namespace/name`, or a path below it."""
    if len(text) > MAX_NAME_LENGTH:
        raise InvalidImageName(f"it has at most {MAX_NAME_LENGTH} characters")
    if _NAME.fullmatch(text) is None:
        raise InvalidImageName(
            "its parts have lower-case letters, digits, and single '.', '_' or '-' between them"
        )
    parts = text.split("/", 2)
    if len(parts) == 1:
        raise InvalidImageName("it begins with an owner: namespace/name")
    return ImageName(namespace=parts[0], repo=parts[1], path=parts[2] if len(parts) > 2 else "")  # noqa: PLR2004


def check_tag(text: str) -> None:
    if _TAG.fullmatch(text) is None:
        raise InvalidTag(text)


def is_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


def check_digest(text: str) -> None:
    if not is_digest(text):
        raise InvalidDigest(text)
