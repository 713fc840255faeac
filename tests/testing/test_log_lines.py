"""What the report of a failed test shows of the hub's log."""

import json

import pytest

from hublet.testing.session import MAX_LINE_CHARACTERS, MAX_LINES, readable_log


@pytest.mark.parametrize(
    ("line", "readable"),
    [
        pytest.param(
            '{"timestamp":"2026-11-17T03:04:05.123456Z","level":"info","logger":"access",'
            '"event":"request","method":"GET","path":"/api/whoami-v2","status":200,"user":null}',
            "03:04:05.123 info request method=GET path=/api/whoami-v2 status=200 user=null",
            id="a request",
        ),
        pytest.param(
            '{"timestamp":"2026-11-17T03:04:05Z","level":"warning","event":"It failed",'
            '"reason":"no route\\nto host","left":["a"]}',
            '03:04:05 warning It failed reason="no route\\nto host" left=["a"]',
            id="texts of several words",
        ),
        pytest.param(
            '{"timestamp":"2026-11-17T03:04:05Z","level":"error","event":"x",'
            '"exception":"Traceback:\\n  ValueError"}',
            "03:04:05 error x\nTraceback:\n  ValueError",
            id="a traceback",
        ),
        pytest.param("Segmentation fault", "Segmentation fault", id="what is no record"),
        pytest.param('["event"]', '["event"]', id="JSON that is no record"),
    ],
)
def test_a_record_is_one_plain_line(line: str, readable: str) -> None:
    assert readable_log(line + "\n") == readable


def test_only_the_last_lines_are_shown_and_no_line_without_end() -> None:
    lines = [
        json.dumps({"event": f"e{number}", "x": "y" * 1000}) for number in range(MAX_LINES + 3)
    ]

    shown = readable_log("\n".join(lines)).splitlines()

    assert shown[0] == "(3 earlier lines are left out; hub.log has them)"
    assert len(shown) == MAX_LINES + 1
    assert shown[1].split()[0] == "e3"
    assert max(map(len, shown)) == MAX_LINE_CHARACTERS + 1
