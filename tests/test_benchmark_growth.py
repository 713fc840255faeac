"""The curves of growth and the soak: verdicts, drawings, the sections that they write, and a run of seconds."""

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from benchmarks import __main__ as command
from benchmarks.growth import curves
from benchmarks.growth.curves import GrowthCurve, OperationCost, sizes_of
from benchmarks.growth.report import README, draw, markers, section, write_section
from benchmarks.subjects import ONLY_BY_NAME, SUBJECTS, growth, soak
from benchmarks.workbench import workbench

MACHINE = {"taken at": "today", "processor": "2 cores"}


def a_curve(name: str, costs: dict[int, float]) -> GrowthCurve:
    found = {size: OperationCost(processor=cost, wall=cost) for size, cost in costs.items()}
    return GrowthCurve(topic="webhooks", operation=name, engine="SQLite", costs=found)


@pytest.mark.parametrize(
    ("costs", "verdict"),
    [
        pytest.param({1_000: 1.0, 1_000_000: 1.1}, "aim reached", id="level"),
        pytest.param({1_000: 1.0, 1_000_000: 2.0}, "aim reached", id="as the logarithm"),
        pytest.param({1_000: 1.0, 1_000_000: 2.1}, "aim missed", id="more than the logarithm"),
    ],
)
def test_a_curve_is_held_against_the_logarithm_of_its_sizes(
    costs: dict[int, float], verdict: str
) -> None:
    assert a_curve("a push", costs).row().verdict == verdict


def test_sizes_begin_alike_and_end_where_the_share_says() -> None:
    for topic in growth.TOPICS:
        assert sizes_of(topic, 1) == list(topic.sizes)
        for share in (0.0001, 0.1):
            sizes = sizes_of(topic, share)
            assert sizes[0] == topic.sizes[0]
            assert sizes[-1] >= 10 * sizes[0]
            assert all(few < many for few, many in pairwise(sizes))


def test_a_drawing_has_a_line_for_each_curve_and_is_whole() -> None:
    drawn = [a_curve("a push", {100: 0.2, 1_000: 0.3}), a_curve("a list", {100: 2.0, 1_000: 20.0})]

    drawing = ET.fromstring(draw("webhooks", drawn))

    texts = [each.text for each in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert {"SQLite", "a push", "a list"} <= set(texts)
    lines = [each for each in drawing.iter("{http://www.w3.org/2000/svg}path") if each.get("fill")]
    assert len(lines) == len(drawn)


def test_the_guide_has_the_markers_of_what_benchmarks_write() -> None:
    page = README.read_text(encoding="utf-8")

    for name in ("growth", "soak"):
        begin, end = markers(name)
        assert page.count(begin) == page.count(end) == 1
        assert page.index(begin) < page.index(end)


def test_a_section_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Before\n<!-- growth: begin -->\nold\n<!-- growth: end -->\nAfter\n")
    text = section([a_curve("a push", {1_000: 1.0, 1_000_000: 3.0})], MACHINE)

    for _ in range(2):
        write_section(page, "growth", text)

    written = page.read_text()
    assert written.startswith(
        "Before\n<!-- growth: begin -->\n\ntaken at: today; processor: 2 cores"
    )
    assert "| a push | SQLite | 1.00 ms | 3.00 ms | 3.00 | 2.00 | aim missed |" in written
    assert written.endswith("<!-- growth: end -->\nAfter\n")
    assert "old" not in written


def test_what_takes_an_hour_runs_only_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(command, "report", lambda _bench, names, **_: asked.append(names))
    command.main([])

    assert set(SUBJECTS) - set(asked[0]) == ONLY_BY_NAME


def test_a_soak_of_seconds_does_everything_and_fails_nothing() -> None:
    with workbench(seconds=10, rounds=1) as bench:
        rows = list(soak.measure(bench))

    assert [row.subject for row in rows[:3]] == [
        f"soak: {what} in the last tenth, SQLite" for what in ("memory", "descriptors", "threads")
    ]
    assert rows[3].subject == "soak: processor time in the last sixth, SQLite"
    assert all(row.ours > 0 for row in rows)


def test_every_topic_grows_and_does_what_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for topic in growth.TOPICS:
        monkeypatch.setattr(topic, "sizes", (20, 40))
    monkeypatch.setattr(growth, "ENGINES", ("SQLite",))
    monkeypatch.setattr(curves, "MOST_SAMPLES", 1)
    with workbench(seconds=1, rounds=1, share=0.5) as bench:
        subjects = [row.subject for row in growth.measure(bench)]

    for topic in growth.TOPICS:
        assert [each for each in subjects if each.startswith(f"{topic.name}: ")]
