"""Holds every answer of the suite against the description."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator, FormatChecker

# Pages, their files and what their scripts ask for are for people; the description does not list
# them.
PAGES = frozenset(
    {
        "/",
        "/login/passkey/options",
        "/search/suggestions",
        "/settings/passkeys/options",
        "/favicon.ico",
        "/robots.txt",
        "/static/docs.css",
        "/static/docs.js",
        "/static/hublet.css",
        "/static/hublet.js",
        "/static/icon.svg",
        "/static/icons.svg",
        "/static/passkeys.js",
    }
)

_formats = FormatChecker(formats=())


@_formats.checks("date-time", raises=ValueError)
def _is_date_time(value: object) -> bool:
    if not isinstance(value, str):
        return True
    datetime.fromisoformat(value)
    return re.search(r"T.*(Z|[+-]\d\d:\d\d)$", value) is not None


@_formats.checks("uri", raises=ValueError)
def _is_uri(value: object) -> bool:
    if not isinstance(value, str):
        return True
    parts = urlsplit(value)
    return bool(parts.scheme and (parts.netloc or parts.path)) and not re.search(r"\s", value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operation:
    method: str
    template: str
    pattern: re.Pattern[str]
    rank: list[int]
    responses: dict[str, Any]


class Contract:
    """What the description promises.

    `check` is called for each answer of the suite, so validators are built once and kept.
    """

    def __init__(self, description: dict[str, Any], *, pages: frozenset[str] = PAGES) -> None:
        self._components = description["components"]
        self._operations = sorted(_operations(description), key=lambda each: each.rank)
        self._validators: dict[tuple[str, ...], Draft202012Validator] = {}
        self._pages = pages
        # Where nothing is described, an error still has to have the one form.
        self._any_error = {
            "headers": {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}},
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/Error"}},
                "application/scim+json": {"schema": {"$ref": "#/components/schemas/ScimError"}},
            },
        }
        registry = {"schema": {"$ref": "#/components/schemas/RegistryErrors"}}
        self._any_registry_error = self._any_error | {"content": {"application/json": registry}}

    def check(
        self, *, method: str, path: str, status: int, headers: Mapping[str, str], body: bytes
    ) -> None:
        """Raise AssertionError when the description does not promise this answer."""
        if method == "OPTIONS" or (path in self._pages and status < 400):
            return
        is_error = status >= 400
        if (is_error or self._find(method, path) is None) and _is_for_people(path, status, headers):
            return
        answer = f"{method} {path} answered {status}"
        key, response = self._promised(method, path, status, answer)
        lowered = {name.lower(): value for name, value in headers.items()}
        self._check_headers(response, lowered, answer)
        if method != "HEAD":
            self._check_body(key, response, lowered.get("content-type", ""), body, answer)

    def _promised(
        self, method: str, path: str, status: int, answer: str
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        operation = self._find("GET" if method == "HEAD" else method, path)
        # 405 says that the method does not exist here, so no operation can promise it.
        if operation is None or status == 405:
            assert status >= 400, f"{answer}, but no such operation is described."
            if path == "/v2" or path.startswith("/v2/"):
                return ("any error of the registry",), self._any_registry_error
            return ("any error",), self._any_error
        response = operation.responses.get(str(status))
        assert response is not None, (
            f"{answer}, but {operation.method} {operation.template} promises only "
            f"{', '.join(operation.responses)}."
        )
        return (operation.method, operation.template, str(status)), self._resolved(response)

    def _find(self, method: str, path: str) -> _Operation | None:
        for operation in self._operations:
            if operation.method == method and operation.pattern.fullmatch(path):
                return operation
        return None

    def _check_headers(
        self, response: dict[str, Any], headers: dict[str, str], answer: str
    ) -> None:
        for name, promise in response.get("headers", {}).items():
            if self._resolved(promise).get("required"):
                assert name.lower() in headers, f"{answer} without the header {name}."

    def _check_body(
        self, key: tuple[str, ...], response: dict[str, Any], sent: str, body: bytes, answer: str
    ) -> None:
        content = response.get("content", {})
        if not content:
            assert not body, f"{answer} with a body, but none is described: {body[:200]!r}"
            return
        media_type = sent.partition(";")[0].strip().lower()
        assert media_type in content or "*/*" in content, (
            f"{answer} as {media_type or 'nothing'}, but {', '.join(content)} is described."
        )
        if media_type.endswith("json") and "schema" in content.get(media_type, {}):
            validator = self._validator((*key, media_type), content[media_type]["schema"])
            _check_json(validator, body, answer)

    def _validator(self, key: tuple[str, ...], schema: dict[str, Any]) -> Draft202012Validator:
        if key not in self._validators:
            # References start at the root of the description; the components stand in for it.
            root = schema | {"components": self._components}
            self._validators[key] = Draft202012Validator(root, format_checker=_formats)
        return self._validators[key]

    def _resolved(self, found: dict[str, Any]) -> dict[str, Any]:
        if "$ref" not in found:
            return found
        _, _, kind, name = found["$ref"].split("/")
        resolved: dict[str, Any] = self._components[kind][name]
        return resolved


_FOR_PEOPLE = (
    "text/html",
    "application/atom+xml",
    "text/event-stream",
    "text/csv",
    "application/x-ndjson",
)
# What a page offers as a file: the log of a job, the result of a query.
_PAGE_DOWNLOADS = re.compile(
    r"/jobs/[^/]+/[0-9a-f]{24}/log|/datasets/[^/]+/[^/]+/sql-console/download"
)


def _is_for_people(path: str, status: int, headers: Mapping[str, str]) -> bool:
    """Tell a page, or the way from a form to one, which the description need not list.

    Errors outside of the API are pages for who asks with a browser.
    """
    media_type = {name.lower(): value for name, value in headers.items()}.get("content-type", "")
    is_page = status in {303, 304, 307} or media_type.startswith(_FOR_PEOPLE)
    is_page = is_page or _PAGE_DOWNLOADS.fullmatch(path) is not None
    return is_page and not path.startswith("/api/")


def _check_json(validator: Draft202012Validator, body: bytes, answer: str) -> None:
    try:
        value = json.loads(body)
    except ValueError as error:
        raise AssertionError(f"{answer} with a body that is not JSON: {body[:200]!r}") from error
    problems = [f"  {error.json_path}: {error.message}" for error in validator.iter_errors(value)]
    assert not problems, "\n".join([f"{answer} with a body that is not as described:", *problems])


def _operations(description: dict[str, Any]) -> Iterator[_Operation]:
    for template, operations in description["paths"].items():
        for method, operation in operations.items():
            slashes = {
                parameter["name"]
                for parameter in operation.get("parameters", [])
                if parameter.get("x-may-contain-slashes")
            }
            yield _Operation(
                method=method.upper(),
                template=template,
                pattern=re.compile("/".join(_pattern(s, slashes) for s in template.split("/"))),
                # The end counts most, so of two that match the longer one is the first.
                rank=[*(_rank(segment, slashes) for segment in template.split("/")), 3],
                responses=operation["responses"],
            )


def _pattern(segment: str, slashes: set[str]) -> str:
    literals, names = re.split(r"{\w+}", segment), re.findall(r"{(\w+)}", segment)
    wide = [".+" if name in slashes else "[^/]+" for name in names]
    return "".join(re.escape(text) + part for text, part in zip(literals, [*wide, ""], strict=True))


def _rank(segment: str, slashes: set[str]) -> int:
    """Put literal segments before parameters, and those before parameters with slashes."""
    names = re.findall(r"{(\w+)}", segment)
    return (2 if slashes & set(names) else 1) if names else 0
