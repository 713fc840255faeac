"""Rendering of templates to HTML, and the frame around a page: whose it is, and where else one can
go.
"""

import re
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from hublet.core.clock import wire
from hublet.core.light_dataclasses import dataclass
from hublet.core.pages.documents import static_url

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The head of a page of somebody who is signed in; `page.html` takes it as `frame`."""

    user_name: str
    # For the button that signs out.
    sign_out_token: str
    # The path of the settings page that is shown; None on pages that are no settings.
    current: str | None = None


# The pages of the settings, in the order of their navigation.
SETTINGS_PAGES = (
    ("/settings/sessions", "Sessions"),
    ("/settings/password", "Password"),
    ("/settings/passkeys", "Passkeys"),
    ("/settings/applications", "Applications"),
    ("/settings/connected-applications", "Connected applications"),
)


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


def _time_element(value: datetime) -> Markup:
    """Show a time to the minute; the page does not know where its reader lives."""
    shown = value.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Markup('<time datetime="{}">{}</time>').format(wire(value), shown)


class Templates:
    """The templates of one package, which extend the layout of all pages."""

    def __init__(self, package: str) -> None:
        self._package = package

    @cached_property
    def _environment(self) -> "Environment":
        from jinja2 import (  # noqa: PLC0415 - a start needs no page
            ChoiceLoader,
            Environment,
            PackageLoader,
            StrictUndefined,
        )

        environment = Environment(
            loader=ChoiceLoader([PackageLoader(self._package), PackageLoader(__package__ or "")]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters |= {
            "inline": _inline,
            "moment": _time_element,
            "paragraphs": _paragraphs,
        }
        environment.globals |= {"address_of": static_url, "settings_pages": SETTINGS_PAGES}
        return environment

    def render(self, template: str, **values: Any) -> bytes:
        return self._environment.get_template(template).render(values).encode()
