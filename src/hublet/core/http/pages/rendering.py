"""Turns templates into HTML."""

import re
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from hublet.core.http.pages.static_files import address_of


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


class Templates:
    """The templates of one package, which extend the layout of all pages."""

    def __init__(self, package: str) -> None:
        self._environment = Environment(
            loader=ChoiceLoader([PackageLoader(package), PackageLoader(__package__ or "")]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {"inline": _inline, "paragraphs": _paragraphs}
        self._environment.globals["address_of"] = address_of

    def render(self, template: str, **values: Any) -> bytes:
        return self._environment.get_template(template).render(values).encode()
