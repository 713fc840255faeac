"""Command for SQL: asks a hub to run a query over the files of a dataset, and prints the rows."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hublet.cli.output import CommandResult, Table
from hublet.cli.remote_command import CommandOutput, add_remote_command, fail

if TYPE_CHECKING:
    from hublet.client import Hub

FormatName = Literal["table", "csv", "json", "arrow"]


def register(app: typer.Typer) -> None:
    add_remote_command(app, "sql", sql, example='hublet sql ada/words "SELECT count(*) FROM train"')


def sql(
    hub: "Hub",
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="As in ada/words.")],
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY", help="One SELECT; its tables are the splits. - reads stdin."
        ),
    ],
    *,
    revision: Annotated[
        str, typer.Option(metavar="NAME", help="A branch, a tag or a commit.")
    ] = "main",
    view: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=KEY",
            help="A table of another configuration, as in french=fr/train; can be repeated.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", metavar="COUNT", min=1, help="At most so many rows."),
    ] = None,
    format_: Annotated[
        FormatName, typer.Option("--format", help="How the rows are printed.")
    ] = "table",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write them to a file.")
    ] = None,
) -> CommandOutput:
    """Run a query over the files of a dataset; the hub runs it, within its limits."""
    body: dict[str, object] = {
        "sql": sys.stdin.read() if query == "-" else query,
        "revision": revision,
        "views": [_view(each) for each in view or ()],
    }
    if limit is not None:
        body["limit"] = limit
    path = f"{_address(dataset)}/sql-console/query"
    if format_ == "arrow":
        return _write(hub.post_for_bytes(path, body | {"format": "arrow"}), output)
    result: dict[str, Any] = hub.post(path, body)
    if result.get("error"):
        fail(str(result["error"]))
    names = [column["name"] for column in result["columns"]]
    note = _note(result)
    if format_ == "table" and output is None:
        return _table(names, result["rows"], note)
    text = _as_json(names, result["rows"]) if format_ == "json" else _as_csv(names, result["rows"])
    if output is not None:
        return _write(text.encode(), output)
    return CommandResult(data={}, text=text.rstrip("\n"), message=note)


def _address(dataset: str) -> str:
    from hublet.client.hub import path_of

    owner, slash, name = dataset.removeprefix("datasets/").partition("/")
    if not slash or not name:
        fail(f"{dataset} is no dataset: it has the form owner/name.")
    return path_of("/api/datasets/{owner}/{name}", owner=owner, name=name)


def _view(text: str) -> dict[str, str]:
    name, equals, key = text.partition("=")
    if not equals or "/" not in key:
        fail(f"{text} is no view: it has the form name=configuration/split.")
    return {"viewName": name, "key": key}


def _note(result: dict[str, Any]) -> str | None:
    limit = result.get("truncated")
    return f"There are more rows: the limit of {limit} is reached." if limit else None


def _table(names: list[str], rows: list[list[Any]], note: str | None) -> Table:
    # Two columns may have one name.
    keys = [str(number) for number in range(len(names))]
    headings = [name or "-" for name in names]
    unique = [
        name if headings.count(name) == 1 else f"{name}:{key}"
        for name, key in zip(headings, keys, strict=True)
    ]
    return Table(
        rows=[dict(zip(keys, row, strict=True)) for row in rows],
        columns=dict(zip(unique, keys, strict=True)),
        name=keys[0] if keys else "",
        empty="There are no such rows.",
        note=note,
        data=[dict(zip(unique, row, strict=True)) for row in rows],
    )


def _as_json(names: list[str], rows: list[list[Any]]) -> str:
    import json

    return json.dumps([dict(zip(names, row, strict=True)) for row in rows], ensure_ascii=False)


def _as_csv(names: list[str], rows: list[list[Any]]) -> str:
    import csv
    import io
    import json

    def text_of(value: Any) -> str:
        if value is None or isinstance(value, str):
            return value or ""
        return json.dumps(value, ensure_ascii=False)

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([names, *([text_of(value) for value in row] for row in rows)])
    return text.getvalue()


def _write(data: bytes, output: Path | None) -> CommandResult:
    if output is None:
        if sys.stdout.isatty():
            fail("Arrow is nothing to read on a terminal: name a file with --output.")
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return CommandResult(data={})
    try:
        output.write_bytes(data)
    except OSError as error:
        fail(f"{output} cannot be written: {error.strerror}.")
    return CommandResult(data={"file": str(output), "bytes": len(data)}, message=f"Wrote {output}.")
