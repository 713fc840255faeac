"""Notebooks."""

import base64
import json
from typing import Any

import pytest

from hublet.web.rendering import notebooks
from hublet.web.rendering.links import place_in_repo
from hublet.web.rendering.notebooks import NotebookPreview, preview_notebook

PLACE = place_in_repo("/ada/engine")
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n rest").decode()


def preview(*cells: Any, **fields: Any) -> NotebookPreview:
    notebook = {"nbformat": 4, "metadata": {}, "cells": list(cells)} | fields
    return preview_notebook(json.dumps(notebook).encode(), PLACE)


def code(source: Any = "x", *outputs: Any, number: Any = 1) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": outputs, "execution_count": number}


def shown(**data: Any) -> dict[str, Any]:
    return {
        "output_type": "display_data",
        "data": {key.replace("_", "/"): data[key] for key in data},
    }


def outputs_of(*outputs: Any) -> list[tuple[str, str]]:
    [cell] = preview(code("x", *outputs)).cells
    return [(output.kind, str(output.html)) for output in cell.outputs]


def test_cells_are_text_and_code() -> None:
    found = preview(
        {"cell_type": "markdown", "source": ["# A\n", "[b](c.md)"]},
        code("import os\nos"),
        {"cell_type": "raw", "source": "<raw>"},
    )
    assert [cell.kind for cell in found.cells] == ["markdown", "code", "raw"]
    assert 'href="/ada/engine/blob/main/c.md"' in found.cells[0].html
    assert found.cells[1].html == '<span class="k">import</span> os\nos'
    assert found.cells[1].number == 1
    assert found.cells[2].html == "&lt;raw&gt;"
    assert (found.language, found.cell_count, found.refusal) == ("python", 3, "")


def test_the_kernel_names_the_language() -> None:
    assert preview(metadata={"language_info": {"name": "julia"}}).language == "julia"
    assert preview(metadata={"kernelspec": {"language": "R"}}).language == "R"
    assert preview(metadata=[]).language == "python"


def test_text_loses_the_colours_of_a_terminal() -> None:
    stream = {"output_type": "stream", "text": ["\x1b[31mred\x1b[0m <b>\n", "\x1b]8;;x\x07"]}
    assert outputs_of(stream) == [("text", "red &lt;b&gt;\n")]
    error = {"output_type": "error", "traceback": ["\x1b[0;31mValueError\x1b[0m", "<x>"]}
    assert outputs_of(error) == [("error", "ValueError\n&lt;x&gt;")]


def test_pictures_are_part_of_the_page() -> None:
    [(kind, html)] = outputs_of(shown(image_png=PNG, text_plain="Figure"))
    assert kind == "image"
    assert f'src="data:image/png;base64,{PNG}"' in html
    lines = [PNG[:8] + "\n", PNG[8:]]
    assert outputs_of(shown(image_png=lines))[0][0] == "image"


@pytest.mark.parametrize(
    "image",
    ["nope!", base64.b64encode(b"<svg onload=alert(1)>").decode(), '"><script>', 5, None, ""],
)
def test_what_is_no_picture_is_shown_as_text(image: Any) -> None:
    assert outputs_of(shown(image_png=image, text_plain="Figure")) == [("text", "Figure")]


def test_html_is_sanitized() -> None:
    html = (
        "<style>x</style><table border=1 class=dataframe onclick=alert(1)><tr><td>@ada #1</td></tr>"
        "</table><script>alert(1)</script><img src=https://evil.example/x.png>"
    )
    [(kind, shown_html)] = outputs_of(shown(text_html=html, text_plain="x"))
    assert kind == "html"
    assert '<div class="tbl"' in shown_html
    assert "<td>@ada #1</td>" in shown_html
    for bad in ("script", "onclick", "<style", "<img"):
        assert bad not in shown_html


def test_html_that_is_only_script_is_shown_as_text() -> None:
    plot = "<script>draw()</script>"
    assert outputs_of(shown(text_html=plot, text_plain="Plot")) == [("text", "Plot")]
    deep = "<div>" * 5_000
    assert outputs_of(shown(text_html=deep, text_plain="Deep")) == [("text", "Deep")]


def test_formulas_and_markdown_are_drawn() -> None:
    assert "<math" in outputs_of(shown(text_latex="$a$"))[0][1]
    assert "<em>a</em>" in outputs_of(shown(text_markdown="*a*"))[0][1]


def test_drawings_in_svg_are_not_shown() -> None:
    svg = {"output_type": "display_data", "data": {"image/svg+xml": "<svg onload=alert(1)>"}}
    assert outputs_of(svg) == []


def test_limits_hold_for_the_whole_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(preview(*[code()] * (notebooks.MAX_CELLS + 1)).cells) == notebooks.MAX_CELLS
    many = [{"output_type": "stream", "text": "x"}] * (notebooks.MAX_OUTPUTS + 1)
    assert len(outputs_of(*many)) == notebooks.MAX_OUTPUTS
    long = {"output_type": "stream", "text": "x" * (notebooks.MAX_OUTPUT_CHARACTERS + 1)}
    assert outputs_of(long)[0][1].endswith("x\n…")
    monkeypatch.setattr(notebooks, "MAX_IMAGE_CHARACTERS", 2 * len(PNG))
    pictures = [shown(image_png=PNG, text_plain="Figure")] * 3
    assert [kind for kind, _ in outputs_of(*pictures)] == ["image", "image", "text"]
    monkeypatch.setattr(notebooks, "MAX_TEXT_CHARACTERS", 15)
    first, second = preview(code("import os"), code("import os")).cells
    assert ("<span" in first.html, "<span" in second.html) == (True, False)


@pytest.mark.parametrize(
    "data",
    [b"", b"nope", b"[]", b"1", b"{}", b'{"cells": 1, "nbformat": 4}', b'{"cells": [], "nbformat": 3}',
     b'{"worksheets": []}', b"[" * 100_000, b"\xff\xfe"],
)  # fmt: skip
def test_what_is_no_notebook_is_refused_with_a_sentence(data: bytes) -> None:
    found = preview_notebook(data, PLACE)
    assert found.refusal.startswith("This ")
    assert found.cells == ()


def test_a_large_notebook_is_refused() -> None:
    data = b" " * (notebooks.MAX_BYTES + 1)
    assert preview_notebook(data, PLACE).refusal == "This notebook is too large to be shown."


@pytest.mark.parametrize(
    "cell",
    [1, None, [], {}, {"cell_type": 1}, {"cell_type": "code", "source": 1, "outputs": 1},
     code([1, None, "x"], 1, None, {}, {"output_type": "error", "traceback": 1}, {"data": 1},
          {"data": {}}, {"output_type": "stream"}, shown(text_html=[1]), number="x")],
)  # fmt: skip
def test_odd_cells_do_no_harm(cell: Any) -> None:
    assert preview(cell).refusal == ""
