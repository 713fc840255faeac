"""Turns templates into the two forms of a mail: text, and HTML in which all content is escaped."""

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def _environment() -> "Environment":
    from jinja2 import (  # noqa: PLC0415 - only a worker that has mails to write needs it
        Environment,
        PackageLoader,
        StrictUndefined,
        select_autoescape,
    )

    return Environment(
        loader=PackageLoader("hublet.notifications.mail"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render(template: str, values: dict[str, Any]) -> str:
    return _environment().get_template(template).render(values)
