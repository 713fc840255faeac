import asyncio
import io
import json
import logging
import logging.config
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest
import structlog
import uvicorn.config

from hublet.core.config import LogSettings, load
from hublet.core.logs import configure, get_logger

TOKEN = "hf_" + "a1B2" * 12
JSON = LogSettings(format="json")
NOW = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def records(stream: io.StringIO) -> list[dict[str, Any]]:
    """Read the JSON lines; the time is checked here and taken out."""
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    for line in lines:
        assert NOW.fullmatch(line.pop("timestamp"))
    return lines


def fail(message: str) -> NoReturn:
    raise RuntimeError(message)


def test_a_record_is_a_json_line_with_the_common_keys_first(stream: io.StringIO) -> None:
    configure(JSON, stream=stream)

    get_logger("worker").info("task done", task=7)

    [line] = stream.getvalue().splitlines()
    assert list(json.loads(line)) == ["timestamp", "level", "logger", "event", "task"]
    assert records(stream) == [
        {"level": "info", "logger": "worker", "event": "task done", "task": 7}
    ]


def test_what_is_bound_to_the_context_is_on_records_of_all_kinds(stream: io.StringIO) -> None:
    configure(JSON, stream=stream)

    with structlog.contextvars.bound_contextvars(request_id="r1"):
        get_logger("worker").info("ours")
        logging.getLogger("theirs").info("theirs")

    assert [record["request_id"] for record in records(stream)] == ["r1", "r1"]


@pytest.mark.parametrize(
    ("level", "written"),
    [
        ("debug", ["debug", "info", "warning", "error"]),
        ("info", ["info", "warning", "error"]),
        ("warning", ["warning", "error"]),
        ("error", ["error"]),
    ],
)
def test_records_below_the_level_are_not_written(
    level: str, written: list[str], stream: io.StringIO
) -> None:
    configure(LogSettings(level=level, format="json"), stream=stream)

    for name in ("debug", "info", "warning", "error"):
        getattr(get_logger("ours"), name)(name)
        getattr(logging.getLogger("theirs"), name)(name)

    assert [record["event"] for record in records(stream)[::2]] == written
    assert [record["event"] for record in records(stream)[1::2]] == written


@pytest.mark.parametrize(
    ("form", "stream", "readable"),
    [
        pytest.param("auto", Terminal(), True, id="auto on a terminal"),
        pytest.param("auto", io.StringIO(), False, id="auto elsewhere"),
        pytest.param("console", io.StringIO(), True, id="console anywhere"),
        pytest.param("json", Terminal(), False, id="JSON on a terminal"),
    ],
)
def test_the_form_follows_the_setting_and_the_terminal(
    form: str, stream: io.StringIO, *, readable: bool
) -> None:
    configure(LogSettings(format=form), stream=stream)

    get_logger("worker").info("task done")

    assert stream.getvalue().startswith("{") is not readable
    assert ("\x1b[" in stream.getvalue()) is (form == "auto" and readable)


def test_a_readable_record_is_one_line(stream: io.StringIO) -> None:
    configure(LogSettings(format="console"), stream=stream)

    get_logger("worker").warning("task failed", task=7, token=TOKEN)

    time, rest = stream.getvalue().split(" ", 1)
    assert NOW.fullmatch(time)
    assert re.sub(" +", " ", rest) == "[warning ] task failed [worker] task=7 token=***\n"


def test_the_log_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    configure(JSON)

    get_logger("worker").info("task done")

    output = capsys.readouterr()
    assert output.out == ""
    assert json.loads(output.err)["event"] == "task done"


def test_a_second_configuration_replaces_the_first(stream: io.StringIO) -> None:
    first = io.StringIO()
    configure(JSON, stream=first)
    log = get_logger("worker")
    log.info("to the first")
    configure(LogSettings(format="json", level="error"), stream=stream)

    log.info("to none")
    log.error("to the second")

    assert [record["event"] for record in records(first)] == ["to the first"]
    assert [record["event"] for record in records(stream)] == ["to the second"]


def test_records_of_uvicorn_flow_through_the_pipeline(
    stream: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    logging.config.dictConfig(uvicorn.config.LOGGING_CONFIG)
    configure(JSON, stream=stream)
    uvicorn.Config("app:app", log_config=None)

    logging.getLogger("uvicorn.error").info("Sent %s", f"Bearer {TOKEN}")
    logging.getLogger("uvicorn.access").info("GET /?code=1")

    assert records(stream) == [
        {"level": "info", "logger": "uvicorn.error", "event": "Sent Bearer ***"}
    ]
    assert capsys.readouterr() == ("", "")


def test_calls_of_a_cluster_are_not_logged_one_by_one(stream: io.StringIO) -> None:
    configure(JSON, stream=stream)

    logging.getLogger("httpx2").info("HTTP Request: GET https://cluster/api/v1/pods")
    logging.getLogger("httpx2").warning("The certificate has expired.")

    assert [record["event"] for record in records(stream)] == ["The certificate has expired."]


async def test_records_of_asyncio_flow_through_the_pipeline(stream: io.StringIO) -> None:
    configure(JSON, stream=stream)

    error = RuntimeError(f"no {TOKEN}")
    asyncio.get_running_loop().call_exception_handler({"message": "lost", "exception": error})

    assert records(stream) == [
        {
            "level": "error",
            "logger": "asyncio",
            "event": "lost",
            "exception": "RuntimeError: no hf_***",
        }
    ]


@pytest.mark.parametrize("form", ["json", "console"])
def test_secrets_are_masked_in_the_text_of_exceptions(form: str, stream: io.StringIO) -> None:
    configure(LogSettings(format=form), stream=stream)
    log = get_logger("worker")

    try:
        try:
            fail(f"inner {TOKEN}")
        except RuntimeError as error:
            error.add_note("note: password=hunter2")
            fail("outer postgresql://hub:hunter2@db/hub")
    except RuntimeError as error:
        log.exception("the worker stumbled")
        log.warning("task failed", exc_info=error, error=error)

    text = stream.getvalue()
    assert text.count("inner hf_***") == 2
    assert text.count("outer postgresql://hub:***@db/hub") == 5
    assert text.count("note: password=***") == 2
    assert "hunter2" not in text
    assert TOKEN not in text


def test_objects_are_written_as_text_and_masked(stream: io.StringIO) -> None:
    @dataclass
    class Login:
        password: str

    configure(JSON, stream=stream)
    settings = load({"mail.smtp_url": "smtp://hub:hunter2@mail"}, {})

    get_logger("worker").info("seen", login=Login("hunter2"), settings=settings, at=Path("a"))

    [record] = records(stream)
    assert record["login"].endswith("Login(password=***)")
    assert record["settings"].startswith("Settings(server=ServerSettings(")
    assert record["at"] == "a"
    assert "hunter2" not in stream.getvalue()


def test_the_prefix_of_tokens_can_be_set(stream: io.StringIO) -> None:
    configure(JSON, stream=stream, prefix="acme_")

    get_logger("worker").info(f"acme_{'a' * 20} {TOKEN}")

    assert [record["event"] for record in records(stream)] == ["acme_*** hf_***"]


def test_text_that_is_not_unicode_is_written(stream: io.StringIO) -> None:
    configure(JSON, stream=stream)

    get_logger("worker").info("\udcff", path=b"\xff")

    assert records(stream) == [
        {"level": "info", "logger": "worker", "event": "\udcff", "path": "\\xff"}
    ]


def test_a_record_that_cannot_be_formatted_shows_nothing_of_itself(
    stream: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    logging.getLogger().handlers.clear()  # Pytest's own fail on such a record.
    configure(JSON, stream=stream)

    logging.getLogger("theirs").info("%d tokens", TOKEN)

    assert stream.getvalue() == "A record of theirs could not be written.\n"
    assert capsys.readouterr().err == ""


def test_a_log_that_nobody_reads_any_more_is_no_error(stream: io.StringIO) -> None:
    configure(JSON, stream=stream)
    stream.close()

    get_logger("worker").info("task done")
