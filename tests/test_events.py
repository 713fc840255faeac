"""The catalogue of events is complete, and its documentation is what it says."""

from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, get_origin

import msgspec
import pytest

import hublet
from hublet import events
from hublet.core.outbox import Event
from hublet.events.documentation import as_markdown
from registries import restored_registries

EVENTS = sorted(
    (
        event
        for event in vars(events).values()
        if isinstance(event, type) and issubclass(event, Event) and event is not Event
    ),
    key=lambda event: event.kind,
)
VALUES: dict[object, object] = {str: "x", int: 7, bool: True}
PAGE = Path(hublet.__file__).parents[2] / "docs" / "events.md"


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
def test_every_event_says_what_happened(event: type[Event]) -> None:
    # A dataclass without a docstring gets its signature for one.
    assert event.__doc__ is not None
    assert not event.__doc__.startswith(f"{event.__name__}(")
    assert event.__doc__.partition("\n")[0].rstrip().endswith((".", ":"))


def _values(shape: Any) -> dict[str, object]:
    """Something for every field; what events are made of is filled as well."""
    return {
        field.name: _values(field.type)
        if is_dataclass(field.type)
        else (() if get_origin(field.type) is tuple else VALUES.get(field.type))
        for field in fields(shape)
        if get_origin(field.type) is not dict
    } | {field.name: {"x": True} for field in fields(shape) if get_origin(field.type) is dict}


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
def test_every_event_is_a_frozen_record_that_survives_the_outbox(event: type[Event]) -> None:
    assert is_dataclass(event)
    assert event.__dataclass_params__.frozen
    made = msgspec.convert(_values(event), event)

    assert msgspec.json.decode(msgspec.json.encode(made), type=event) == made


def test_no_two_events_have_the_same_kind() -> None:
    kinds = [event.kind for event in EVENTS]

    assert len(set(kinds)) == len(kinds)
    assert {kind: Event.catalogue[kind] for kind in kinds} == {e.kind: e for e in EVENTS}


def test_the_page_is_written_from_the_catalogue() -> None:
    assert PAGE.read_text(encoding="utf-8") == as_markdown(), "Run `make docs`."


def test_the_page_shows_kind_words_and_fields() -> None:
    section = as_markdown().partition("## `credential.created`")[2].partition("## ")[0]

    assert section == (
        "\n\nA credential was issued or imported. Its value is never part of an event.\n\n"
        "| field | type |\n|---|---|\n"
        "| `token_id` | string |\n| `user_id` | string |\n| `name` | string |\n\n"
    )


def test_events_of_tests_are_not_documented() -> None:
    before = as_markdown()

    with restored_registries():

        @dataclass(frozen=True, slots=True, kw_only=True)
        class Invented(Event):
            """Nothing happened."""

            kind = "test.invented"

        assert Event.catalogue["test.invented"] is Invented
        assert as_markdown() == before
