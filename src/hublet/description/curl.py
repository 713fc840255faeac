"""Writes the curl command that shows how an operation is called."""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from hublet.description.examples import example_of
from hublet.description.words import Schemas

_WIDTH = 88


def curl_of(
    *, method: str, url: str, operation: dict[str, Any], schemas: Schemas, token: bool
) -> str:
    """Write the command; `$HF_TOKEN` and the parts of the path stay shell variables."""
    command = "curl" if method == "GET" else f"curl -X {method}"
    parts = [f'{command} "{_path_with_variables(url)}{_query(operation, schemas)}"']
    if token:
        parts.append('-H "Authorization: Bearer $HF_TOKEN"')
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        parts += _body(media_type, example_of(content.get("schema", {}), schemas))
        break
    line = " ".join(parts)
    return line if len(line) <= _WIDTH else " \\\n  ".join(parts)


def _path_with_variables(url: str) -> str:
    return re.sub(r"{(\w+)}", lambda found: "$" + _shell_name(found[1]), url)


def _shell_name(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def _query(operation: dict[str, Any], schemas: Schemas) -> str:
    pairs = [
        (parameter["name"], example_of(parameter["schema"], schemas, name=parameter["name"]))
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "query" and parameter.get("required")
    ]
    return f"?{urlencode(pairs, doseq=True)}" if pairs else ""


def _body(media_type: str, example: Any) -> Iterator[str]:
    if media_type == "application/x-www-form-urlencoded" and isinstance(example, dict):
        for name, value in example.items():
            yield f"--data-urlencode {shlex.quote(f'{name}={value}')}"
        return
    yield f'-H "Content-Type: {media_type}"'
    if media_type == "application/json":
        yield f"-d {shlex.quote(json.dumps(example, ensure_ascii=False))}"
    else:
        yield "--data-binary @FILE"
