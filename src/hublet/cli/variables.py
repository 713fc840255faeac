"""Variables and secrets as a command takes them: one by one, by name alone, or from a file."""

from pathlib import Path

import typer

from hublet.cli.environment import first_variable


def read_variables(given: list[str] | None, file: Path | None, *, option: str) -> dict[str, str]:
    """Return those of a file and, over them, those of the command line.

    `option` takes one, and the option that ends in `-file` takes the file.
    """
    from_file = f"{option}-file"
    lines = [] if file is None else _lines_of(file, from_file)
    return dict(_in_file(line, from_file) for line in lines) | dict(
        _variable(item, option) for item in given or []
    )


def _lines_of(file: Path, option: str) -> list[str]:
    try:
        # Some editors put a mark at the start, which is no part of the first name.
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise typer.BadParameter(f"{file} cannot be read as text.", param_hint=option) from None
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _in_file(line: str, option: str) -> tuple[str, str]:
    name, value = _variable(line, option)
    value = value.strip()
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return name.strip(), value[1:-1] if quoted else value


def _variable(item: str, option: str) -> tuple[str, str]:
    # Of what may be a secret in the wrong place nothing is repeated.
    name, equals, value = item.partition("=")
    if not name:
        raise typer.BadParameter("It needs a name, as in NAME=VALUE.", param_hint=option)
    if equals:
        return name, value
    found = first_variable(name)
    if found is None:
        raise typer.BadParameter(
            "A name without a value is taken from the environment, where it is not set.",
            param_hint=option,
        )
    return name, found
