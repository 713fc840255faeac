"""What a mail says, before it has an address."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from hublet.core.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    subject: str
    # The name of its two templates, without the ending, and what they show.
    template: str
    values: Mapping[str, Any]
    # Why the recipient gets it: a sentence.
    why: str
    # The first part of the message id that all mails of one thread answer to.
    root: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
