"""Newest schema of SQLite as one script: a new database begins with it, not with every migration.

Each ALTER TABLE makes SQLite read the whole schema anew, which is four fifths of the time that all
migrations take. `make schema` writes the script from the migrations, and a test holds it to them. One
that was not written anew after a migration was added is not used.
"""

import hashlib
import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from importlib import resources

_FILE = "newest_schema.sql"
_OPENING = "-- Written by `make schema` from the migrations; their digest is "
_PART = r"-- only {engine}\n.*?-- end\n"


def without_parts_of(engine: str, script: str) -> str:
    """Leave out of a migration what only this engine takes."""
    return re.sub(_PART.format(engine=engine), "", script, flags=re.DOTALL)


def statements_of(script: str) -> Iterator[str]:
    """Split a migration for SQLite, where SQLite itself sees a complete statement."""
    # A table that is nothing but its key needs no second copy of it.
    script = without_parts_of("postgresql", script).replace("/* clustered */", "WITHOUT ROWID")
    lines: list[str] = []
    for line in script.splitlines():
        if not lines and (not line.strip() or line.lstrip().startswith("--")):
            continue
        lines.append(line)
        if sqlite3.complete_statement("\n".join(lines)):
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


def newest_schema(scripts: Iterable[str]) -> str | None:
    """Return the script that does what these migrations do to an empty database, if there is one."""
    script = (resources.files("hublet.core.database") / _FILE).read_text(encoding="utf-8")
    return script if script.startswith(_opening(scripts)) else None


def written_schema(scripts: list[str]) -> str:
    """Return the script for these migrations, as SQLite itself writes down what they have made."""
    with sqlite3.connect(":memory:") as raw:
        for script in scripts:
            for statement in statements_of(script):
                raw.execute(statement)
        made = raw.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
        return "\n\n".join([_opening(scripts), *(f"{row[0]};" for row in made)]) + "\n"


def _opening(scripts: Iterable[str]) -> str:
    return _OPENING + hashlib.sha256("\0".join(scripts).encode()).hexdigest() + "."


if __name__ == "__main__":
    from hublet.core.database.migrations import known_migrations

    sys.stdout.write(written_schema([each.script for each in known_migrations()]))
