"""How a setting is declared: a field with its kind and the sentence that tells it."""

from dataclasses import field
from typing import Any

from hublet.core.config.kinds import Kind


def setting(
    default: object, kind: Kind, sentence: str, *, unset: str = "none", secret: bool = False
) -> Any:
    metadata = {"kind": kind, "sentence": sentence, "unset": unset, "secret": secret}
    return field(default=default, repr=not secret, metadata=metadata)
