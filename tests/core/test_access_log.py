import io
import json
from typing import Any

import pytest

from hublet.core.config import LogSettings
from hublet.core.logs import AccessLog, configure

JSON = LogSettings(format="json")
TOKEN = "hf_" + "a1B2" * 12
SECOND = 1_000_000_000


def an_access_log(logs: LogSettings, stream: io.StringIO) -> AccessLog:
    return AccessLog(logs, stream=stream, now_ns=lambda: 1_794_707_096 * SECOND + 1999)


def a_request(**changes: Any) -> Any:
    request = {
        "method": "GET",
        "path": "/api/whoami-v2",
        "status": 200,
        "micros": 1234,
        "bytes_out": 56,
        "request_id": "r1",
        "address": "127.0.0.1",
        "user": "ada",
    }
    return request | changes


def paths(stream: io.StringIO) -> list[str]:
    return [json.loads(line)["path"] for line in stream.getvalue().splitlines()]


def test_a_request_is_one_json_line_like_those_of_the_log() -> None:
    stream = io.StringIO()
    log = an_access_log(JSON, stream)

    log.write(**a_request(user=None))
    log.flush()

    assert stream.getvalue() == (
        '{"timestamp":"2026-11-15T01:44:56.000001Z","level":"info","logger":"access",'
        '"event":"request","method":"GET","path":"/api/whoami-v2","status":200,"micros":1234,'
        '"bytes_out":56,"request_id":"r1","address":"127.0.0.1","user":null}\n'
    )


@pytest.mark.parametrize(
    ("user", "shown"),
    [pytest.param("ada", "ada", id="a user"), pytest.param(None, "-", id="nobody")],
)
def test_a_request_is_one_readable_line_on_a_console(user: str | None, shown: str) -> None:
    stream = io.StringIO()
    log = an_access_log(LogSettings(format="console"), stream)

    log.write(**a_request(user=user))
    log.flush()

    assert stream.getvalue() == (
        "2026-11-15T01:44:56.000001Z [info     ] GET /api/whoami-v2 200 1.2 ms 56 B"
        f" 127.0.0.1 {shown} r1\n"
    )


def test_the_time_goes_on() -> None:
    stream = io.StringIO()
    times = iter([0, SECOND - 1, SECOND, 86_400 * SECOND])
    log = AccessLog(JSON, stream=stream, now_ns=lambda: next(times))

    for _ in range(4):
        log.write(**a_request())
    log.flush()

    assert [json.loads(line)["timestamp"] for line in stream.getvalue().splitlines()] == [
        "1970-01-01T00:00:00.000000Z",
        "1970-01-01T00:00:00.999999Z",
        "1970-01-01T00:00:01.000000Z",
        "1970-01-02T00:00:00.000000Z",
    ]


def test_lines_wait_for_a_flush_or_for_16_kilobytes() -> None:
    stream = io.StringIO()
    log = an_access_log(JSON, stream)
    size = 16 * 1024

    log.write(**a_request(path="/" + "a" * (size - 300)))
    assert stream.getvalue() == ""
    log.write(**a_request(path="/b"))
    assert len(stream.getvalue()) >= size
    log.write(**a_request(path="/c"))
    assert paths(stream)[1:] == ["/b"]
    log.flush()
    log.flush()

    assert paths(stream)[1:] == ["/b", "/c"]


@pytest.mark.parametrize(
    "logs",
    [
        pytest.param(LogSettings(access=False), id="switched off"),
        pytest.param(LogSettings(level="warning"), id="the level is higher than info"),
    ],
)
def test_nothing_is_written(logs: LogSettings) -> None:
    stream = io.StringIO()
    log = an_access_log(logs, stream)

    log.write(**a_request())
    log.flush()

    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        pytest.param(f"/a/{TOKEN}/b", "/a/hf_***/b", id="a token"),
        pytest.param("/a/hf_hub", "/a/hf_hub", id="a word that begins like a token"),
        pytest.param("/unsubscribe/a-B_9", "/unsubscribe/***", id="a link from a mail"),
        pytest.param("/verify-email/a-B_9", "/verify-email/***", id="another one"),
        pytest.param("/é", "/é", id="letters beyond ASCII"),
        pytest.param("/\udcff", "/\\udcff", id="what is not Unicode"),
        pytest.param("/a\nb\x1b\x85", "/a\\nb\\x1b\\x85", id="control characters"),
    ],
)
def test_a_path_is_safe_to_write(path: str, shown: str) -> None:
    stream = io.StringIO()
    log = an_access_log(JSON, stream)

    log.write(**a_request(path=path))
    log.flush()

    assert paths(stream) == [shown]


def test_tokens_of_the_hub_and_of_the_public_one_are_masked() -> None:
    configure(JSON, stream=io.StringIO(), prefix="acme_")
    stream = io.StringIO()
    log = an_access_log(JSON, stream)

    log.write(**a_request(path=f"/acme_{'a' * 49}"))
    log.write(**a_request(path=f"/{TOKEN}"))
    log.flush()

    assert paths(stream) == ["/acme_***", "/hf_***"]


def test_control_characters_do_not_reach_the_terminal() -> None:
    stream = io.StringIO()
    log = an_access_log(LogSettings(format="console"), stream)

    log.write(**a_request(path="/a\n2026 [info] GET /forged\x1b[2J"))
    log.flush()

    assert "GET /a\\n2026 [info] GET /forged\\x1b[2J 200" in stream.getvalue()
    assert stream.getvalue().count("\n") == 1


def test_a_log_that_nobody_reads_any_more_does_not_stop_requests() -> None:
    stream = io.StringIO()
    log = an_access_log(JSON, stream)
    log.write(**a_request())
    stream.close()

    log.flush()
    log.write(**a_request())
