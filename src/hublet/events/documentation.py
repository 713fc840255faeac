"""The catalogue as a page."""

from dataclasses import fields

import hublet.events  # noqa: F401 - brings the whole catalogue
from hublet.core.outbox import Event


def as_markdown() -> str:
    parts = [
        "# Events",
        (
            "Facts that the hub publishes, each in the transaction of the change it tells of. "
            "Reactions in other features run once for each of them. "
            "This page is written by `make docs` from `src/hublet/events/`."
        ),
    ]
    for kind, event in sorted(_catalogue().items()):
        rows = [f"| `{field.name}` | {_type_in_words(field.type)} |" for field in fields(event)]  # type: ignore[arg-type]
        table = "\n".join(["| field | type |", "|---|---|", *rows])
        lines = [line.strip() for line in (event.__doc__ or "").strip().splitlines()]
        parts += [f"## `{kind}`", "\n".join(lines), table]
    return "\n\n".join(parts) + "\n"


def _catalogue() -> dict[str, type[Event]]:
    # Tests have facts of their own, which belong into no documentation.
    return {k: e for k, e in Event.catalogue.items() if e.__module__.startswith("hublet.events.")}


def _type_in_words(annotation: object) -> str:
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return {"str": "string", "int": "integer", "bool": "boolean"}.get(
        name, name.replace("str", "string").replace(" | None", ", may be absent")
    )
