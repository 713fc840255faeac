"""The form of a gate, as cards describe it, well and badly."""

from typing import Any

import pytest

from hublet.repos.gate_form import GateField, GateFieldKind, GateForm, gate_form_of


def test_a_card_without_questions_has_an_empty_form() -> None:
    assert gate_form_of(None) == gate_form_of({"license": "mit"}) == GateForm()


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(["Company"], id="a list"),
        pytest.param({"Company": "number"}, id="an unknown kind"),
        pytest.param({"Company": None}, id="no kind"),
        pytest.param({"Company": {"type": ["text"]}}, id="a kind that is a list"),
        pytest.param({"Use": {"type": "select"}}, id="a selection without choices"),
        pytest.param({"Use": {"type": "select", "options": [{"label": "x"}]}}, id="no values"),
    ],
)
def test_what_is_malformed_is_left_out(fields: Any) -> None:
    assert gate_form_of({"extra_gated_fields": fields, "extra_gated_prompt": 3}) == GateForm()


def test_labels_may_be_anything_and_are_cut() -> None:
    form = gate_form_of({"extra_gated_fields": {7: "text", "x" * 300: {"type": "country"}}})

    assert form.fields == (
        GateField(id="field-0", label="7", kind=GateFieldKind.text),
        GateField(id="field-1", label="x" * 200, kind=GateFieldKind.country),
    )


def test_no_more_questions_are_asked_than_a_request_can_hold() -> None:
    fields = {f"Question {number}": "text" for number in range(60)}

    assert len(gate_form_of({"extra_gated_fields": fields}).fields) == 50
