"""Turns templates into HTML."""

import re
from datetime import UTC, datetime
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from hublet.core.clock import wire
from hublet.core.http.pages.frames import SETTINGS_PAGES
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


def _moment(value: datetime) -> Markup:
    """Show a time to the minute; the page does not know where its reader lives."""
    shown = value.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Markup('<time datetime="{}">{}</time>').format(wire(value), shown)


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
        self._environment.filters |= {
            "inline": _inline,
            "moment": _moment,
            "paragraphs": _paragraphs,
        }
        self._environment.globals |= {"address_of": address_of, "settings_pages": SETTINGS_PAGES}

    def render(self, template: str, **values: Any) -> bytes:
        return self._environment.get_template(template).render(values).encode()
