"""Form of a gate: what the card of a gated repository asks of those who want to read it."""

from collections.abc import Iterator, Mapping
from datetime import date
from enum import StrEnum
from typing import Any

from hublet.core.dataclasses import dataclass

MAX_FIELDS = 50
MAX_LABEL = 200
MAX_ANSWER = 2000


class GateFieldKind(StrEnum):
    """How a question is answered, in the words of cards."""

    text = "text"
    checkbox = "checkbox"
    country = "country"
    date = "date_picker"
    select = "select"


_KINDS = frozenset(each.value for each in GateFieldKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateField:
    # The name of the control; the label may be any text.
    id: str
    label: str
    kind: GateFieldKind
    # The values of a selection, with what is shown for them.
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GateForm:
    # What the owner wrote instead of the usual words; None: nothing.
    heading: str | None = None
    # Markdown.
    prompt: str | None = None
    description: str | None = None
    button: str | None = None
    fields: tuple[GateField, ...] = ()


Answers = dict[str, str | bool]


def gate_form_of(card: Mapping[str, Any] | None) -> GateForm:
    """Return the form that a card asks for; what is malformed in it is left out."""
    data = card or {}
    return GateForm(
        heading=_text(data.get("extra_gated_heading")),
        prompt=_text(data.get("extra_gated_prompt")),
        description=_text(data.get("extra_gated_description")),
        button=_text(data.get("extra_gated_button_content")),
        fields=tuple(_fields(data.get("extra_gated_fields")))[:MAX_FIELDS],
    )


def _text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _fields(value: Any) -> Iterator[GateField]:
    questions = value if isinstance(value, dict) else {}
    for number, (label, wanted) in enumerate(questions.items()):
        described = wanted if isinstance(wanted, dict) else {"type": wanted}
        kind = described.get("type")
        options = tuple(_options(described.get("options")))
        if not isinstance(kind, str) or kind not in _KINDS:
            continue
        if options or kind != GateFieldKind.select:
            yield GateField(
                id=f"field-{number}",
                label=str(label)[:MAX_LABEL],
                kind=GateFieldKind(kind),
                options=options,
            )


def _options(value: Any) -> Iterator[tuple[str, str]]:
    for option in value if isinstance(value, list) else ():
        if isinstance(option, dict):
            if option.get("value") is not None:
                yield str(option["value"]), str(option.get("label", option["value"]))
        elif option is not None:
            yield str(option), str(option)


def read_answers(form: GateForm, given: Mapping[str, str]) -> tuple[Answers, dict[str, str]]:
    """Return the answers by label, and what is wrong with them by the id of the field."""
    answers: Answers = {}
    problems: dict[str, str] = {}
    for field in form.fields:
        value = given.get(field.id, "").strip()
        answers[field.label] = True if field.kind is GateFieldKind.checkbox else value
        problem = _problem(field, value)
        if problem is not None:
            problems[field.id] = problem
    return answers, problems


def _problem(field: GateField, value: str) -> str | None:
    if not value:
        is_box = field.kind is GateFieldKind.checkbox
        return "This has to be ticked." if is_box else "This is needed."
    if len(value) > MAX_ANSWER:
        return f"This has at most {MAX_ANSWER:,} characters."
    if field.options and value not in dict(field.options):
        return "This is none of the choices."
    if field.kind is GateFieldKind.date and not _is_date(value):
        return "This is a date, as in 2026-11-17."
    return None


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
