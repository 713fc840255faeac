"""Turns templates into HTML."""

import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape


def _inline(text: str) -> Markup:
    """Show `code` between backticks as code; everything else is plain text."""
    parts = re.split(r"`([^`]+)`", text)
    return Markup().join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part)
        for number, part in enumerate(parts)
    )


def _paragraphs(text: str) -> Markup:
    return Markup("\n").join(
        Markup("<p>{}</p>").format(_inline(part.strip())) for part in text.split("\n\n") if part
    )


_environment = Environment(
    loader=PackageLoader("hublet.pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.filters |= {"inline": _inline, "paragraphs": _paragraphs}


def render(template: str, **values: Any) -> bytes:
    return _environment.get_template(template).render(values).encode()
