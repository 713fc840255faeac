"""Log: one pipeline for our records and those of libraries, with every secret masked."""

import logging
import re
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TextIO

import msgspec
import structlog
from structlog.dev import ConsoleRenderer, plain_traceback
from structlog.processors import JSONRenderer, StackInfoRenderer, TimeStamper, format_exc_info
from structlog.stdlib import BoundLogger, ProcessorFormatter
from structlog.typing import EventDict, Processor

from hublet.core.config import LogSettings

_MASK = "***"
_FLUSH_BYTES = 16 * 1024
_MAX_DEPTH = 8
_LINKS = ("/unsubscribe/", "/verify-email/", "/reset-password/", "/invitations/")
_FIRST_KEYS = ("timestamp", "level", "logger", "event")

_NAMES = r"(?:passw(?:or)?d|secret|token|authorization|credential|cookie)"
_SECRET_KEY = re.compile(_NAMES, re.IGNORECASE)
# What a secret is called or counted by is no secret; only our own spellings are let through.
_HARMLESS_KEY = re.compile(r"_(?:at|count|id|kind|name)$")
_QUOTED = r"""b?(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
# "A bearer token is needed." stays readable.
_PROSE = r"(?:tokens?|auth|authentication|authorization|schemes?|challenges?)[.,;:]?(?:\s|$)"
# Each keeps its group. None begins with a repetition, so that a long text from a stranger
# costs one pass and not the square of it.
_SECRETS_IN_TEXT = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b((?:authorization|cookie)\s?:\s?)[^\r\n\"']+",
        rf"\b((?:bearer|basic)(?:\s|%20|\+){{1,9}})(?!{_PROSE})[^\s\"'<>]+",
        r"(://[^\s/:@]*:)[^\s/]*(?=@)",
        # The link of a mail is a credential by itself.
        r"(/(?:unsubscribe|verify-email|reset-password|invitations)/)[A-Za-z0-9_-]+",
        rf"({_NAMES}[\w.-]{{0,30}}[\"']\s?:\s?){_QUOTED}",
        rf"({_NAMES}[\w.-]{{0,30}}=)(?:{_QUOTED}|[^\s&;,\"')]+)",
    )
)


def _credential_pattern(prefix: str) -> re.Pattern[str]:
    # The real prefix is masked always: people send tokens of the public hub by mistake.
    # A percent-encoded character before it is as good as a blank.
    start = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2}))"
    return re.compile(rf"{start}(hf_|{re.escape(prefix)})[A-Za-z0-9_]{{20,}}")


@dataclass(slots=True)
class _Redaction:
    """What `configure` sets for the process."""

    prefix: str
    credentials: re.Pattern[str]
    # What the process is called, where one command runs several.
    process: str | None = None


_redaction = _Redaction("hf_", _credential_pattern("hf_"))


def get_logger(name: str) -> BoundLogger:
    """Return a logger; what it writes before `configure` goes to standard output, unmasked."""
    return structlog.stdlib.get_logger(name)


def redact_text(text: str) -> str:
    """Mask credentials of ours, HTTP credentials, and what stands after a name of a secret.

    A token that was imported without the prefix is known only by the name before it.
    """
    text = _redaction.credentials.sub(rf"\1{_MASK}", text)
    for pattern in _SECRETS_IN_TEXT:
        text = pattern.sub(rf"\1{_MASK}", text)
    return text


def redact(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Mask secrets in a whole record, and leave only what JSON knows in it."""
    return {key: _redact_field(key, value, 1) for key, value in event.items()}


def _redact_field(key: object, value: object, depth: int) -> Any:
    name = _as_text(key)
    secret = _SECRET_KEY.search(name) and not _HARMLESS_KEY.search(name)
    return _MASK if secret and value is not None else _redact_value(value, depth)


def _redact_value(value: object, depth: int) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth <= _MAX_DEPTH and isinstance(value, Mapping):
        return {
            redact_text(_as_text(key)): _redact_field(key, each, depth + 1)
            for key, each in value.items()
        }
    if depth <= _MAX_DEPTH and isinstance(value, list | tuple | set | frozenset):
        parts = list(value)
        # HTTP headers come as pairs of name and value.
        if len(parts) == 2 and isinstance(parts[0], str | bytes):  # noqa: PLR2004
            parts[1] = _redact_field(parts[0], parts[1], depth + 1)
        return [_redact_value(part, depth + 1) for part in parts]
    return redact_text(_as_text(value))


def _as_text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return repr(value) if isinstance(value, BaseException) else str(value)


class _Handler(logging.StreamHandler[TextIO]):
    """The one handler of ours, so that a second `configure` finds the first."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name.
        # Python would print the arguments of the record, and nothing has masked them yet.
        with suppress(OSError, ValueError):
            self.stream.write(f"A record of {record.name} could not be written.\n")


def configure(
    logs: LogSettings,
    *,
    stream: TextIO | None = None,
    prefix: str = "hf_",
    process: str | None = None,
) -> None:
    """Send all records of this process to the stream; to standard error, if none is given.

    `prefix` is what tokens begin with, `process` a name that each record shall have. Start uvicorn with `log_config=None`: its own
    configuration would take its records out of this pipeline.
    """
    _redaction.prefix, _redaction.credentials = prefix, _credential_pattern(prefix)
    _redaction.process = process
    shared: list[Processor] = [
        *([] if process is None else [partial(_name_process, process)]),
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        StackInfoRenderer(),
        TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *shared,
            ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    _take_over_standard_logging(logs, stream or sys.stderr, shared)


def _take_over_standard_logging(logs: LogSettings, stream: TextIO, shared: list[Processor]) -> None:
    handler = _Handler(stream)
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                ProcessorFormatter.remove_processors_meta,
                format_exc_info,
                redact,
                *_renderers(stream, readable=_is_readable(logs, stream)),
            ],
        )
    )
    root = logging.getLogger()
    for old in [each for each in root.handlers if isinstance(each, _Handler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logs.level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    # Its lines hold query strings, and `AccessLog` writes the same without them.
    logging.getLogger("uvicorn.access").setLevel(logging.WARNING)
    # A line for each call of a cluster, which is asked every second.
    logging.getLogger("httpx2").setLevel(logging.WARNING)


def _name_process(name: str, _logger: object, _method: str, event: EventDict) -> EventDict:
    event["process"] = name
    return event


def _renderers(stream: TextIO, *, readable: bool) -> list[Processor]:
    if readable:
        return [ConsoleRenderer(colors=stream.isatty(), exception_formatter=plain_traceback)]
    return [_order_keys, JSONRenderer()]


def _order_keys(_logger: object, _method: str, event: EventDict) -> EventDict:
    return {key: event.pop(key) for key in _FIRST_KEYS if key in event} | dict(event)


def _is_readable(logs: LogSettings, stream: TextIO) -> bool:
    return logs.format == "console" or (logs.format == "auto" and stream.isatty())


class _AccessRecord(msgspec.Struct, gc=False, kw_only=True):
    timestamp: str
    level: str = "info"
    logger: str = "access"
    event: str = "request"
    method: str
    path: str
    status: int
    micros: int
    bytes_out: int
    request_id: str
    address: str
    user: str | None


class _ProcessAccessRecord(_AccessRecord, gc=False, kw_only=True):
    process: str


class AccessLog:
    """One line for each request, kept in memory until `flush` or 16 kB.

    For one event loop: nothing here is locked. The owner calls `flush` every now and then,
    and when the server stops.
    """

    def __init__(
        self,
        logs: LogSettings,
        *,
        stream: TextIO | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._stream = stream or sys.stderr
        self._process = _redaction.process
        self._enabled = logs.access and logs.level in {"debug", "info"}
        self._render = _readable_line if _is_readable(logs, self._stream) else _json_line
        # Not the hub's clock: the log tells real time, also when test mode has moved that.
        self._now_ns = now_ns
        self._second = -1
        self._second_text = ""
        self._buffer = bytearray()

    def write(  # noqa: PLR0913 - a record of eight parts; an object for them would cost time.
        self,
        *,
        method: str,
        path: str,
        status: int,
        micros: int,
        bytes_out: int,
        request_id: str,
        address: str,
        user: str | None,
    ) -> None:
        """Note a request; `path` comes without the query string."""
        if not self._enabled:
            return
        # Nearly every path passes these cheap looks, and is written as it is.
        secret = "hf_" in path or _redaction.prefix in path or path.startswith(_LINKS)
        if secret or not path.isprintable():
            # Control characters would reach the terminal of whoever reads it, also from JSON.
            path = redact_text(path if path.isprintable() else ascii(path)[1:-1])
        record = _AccessRecord(
            timestamp=self._timestamp(),
            method=method,
            path=path,
            status=status,
            micros=micros,
            bytes_out=bytes_out,
            request_id=request_id,
            address=address,
            user=user,
        )
        if self._process is not None:
            named = msgspec.structs.asdict(record)
            record = _ProcessAccessRecord(**named, process=self._process)
        self._render(record, self._buffer)
        if len(self._buffer) >= _FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        if not self._buffer:
            return
        text = self._buffer.decode()
        self._buffer.clear()
        # A reader of the log that went away must not take the requests with it.
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()

    def _timestamp(self) -> str:
        second, nanos = divmod(self._now_ns(), 1_000_000_000)
        if second != self._second:
            self._second = second
            self._second_text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._second_text}.{nanos // 1000:06d}Z"


_encode_into = msgspec.json.Encoder().encode_into


def _json_line(request: _AccessRecord, buffer: bytearray) -> None:
    _encode_into(request, buffer, -1)
    buffer += b"\n"


def _readable_line(request: _AccessRecord, buffer: bytearray) -> None:
    line = (
        f"{request.timestamp} [{request.level:9}] {request.method} {request.path}"
        f" {request.status} {request.micros / 1000:.1f} ms {request.bytes_out} B"
        f" {request.address} {request.user or '-'} {request.request_id}"
    )
    if isinstance(request, _ProcessAccessRecord):
        line += f" {request.process}"
    # A path may hold control characters, and those would reach the terminal.
    buffer += (line if line.isprintable() else ascii(line)[1:-1]).encode() + b"\n"
