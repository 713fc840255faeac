"""Documentation of the events as a Markdown page: `python -m hublet.events.documentation`."""

import re
import sys
from dataclasses import fields
from types import GenericAlias
from typing import Any

import hublet.events
from hublet.core.outbox import Event

_WORDS = {"str": "string", "int": "integer", "bool": "boolean"}


def as_markdown() -> str:
    parts = [
        "# Events",
        (
            "Events that the hub publishes, each in the transaction of the change it tells of. "
            "Reactions in other features run once for each of them. "
            "This page is written by `make docs` from `src/hublet/events/`."
        ),
    ]
    for kind, event in sorted(_catalogue().items()):
        parts += _section(f"`{kind}`", event)
    parts += [part for shape in _shapes() for part in _section(shape.__name__, shape)]
    return "\n\n".join(parts) + "\n"


def _section(title: str, shape: Any) -> list[str]:
    rows = [f"| `{field.name}` | {_type_in_words(field.type)} |" for field in fields(shape)]
    table = "\n".join(["| field | type |", "|---|---|", *rows])
    lines = [line.strip() for line in (shape.__doc__ or "").strip().splitlines()]
    return [f"## {title}", "\n".join(lines), table]


def _shapes() -> list[type]:
    """Return what events are made of beside plain values, in the order of their names."""
    public = (getattr(hublet.events, name) for name in hublet.events.__all__)
    return [shape for shape in public if not issubclass(shape, Event)]


def _catalogue() -> dict[str, type[Event]]:
    # Tests have events of their own, which belong into no documentation.
    return {k: e for k, e in Event.catalogue.items() if e.__module__.startswith("hublet.events.")}


def _type_in_words(annotation: object) -> str:
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    if isinstance(annotation, GenericAlias):
        name = str(annotation)
    name = re.sub(r"hublet\.events\.\w+\.", "", name)
    name = re.sub(r"tuple\[(.+), \.\.\.\]", r"list of \1", name)
    name = re.sub(r"dict\[(\w+), (.+)\]", r"object of \2", name)
    for ours, word in _WORDS.items():
        name = re.sub(rf"\b{ours}\b", word, name)
    return name.replace(" | None", ", may be absent").replace(" | ", " or ")


if __name__ == "__main__":
    sys.stdout.write(as_markdown())
