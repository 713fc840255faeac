"""Variables that are longer than the kernel takes become files."""

from collections.abc import Mapping
from pathlib import Path

# The kernel takes no longer string, and it ends each with a zero.
MAX_BYTES = 131_071


def as_files(environment: Mapping[str, str], *, home: Path, seen_at: str) -> dict[str, str]:
    """Return the environment of an attempt with each value in it that fits.

    In the place of a NAME whose value does not there is NAME_FILE, a path in the home of the
    attempt, which it sees at `seen_at`. Blocks.
    """
    fitting = dict[str, str]()
    for name, value in environment.items():
        if len(f"{name}={value}".encode()) <= MAX_BYTES:
            fitting[name] = value
            continue
        home.mkdir(mode=0o700, exist_ok=True)
        (home / f".{name}").write_text(value, encoding="utf-8")
        fitting[f"{name}_FILE"] = f"{seen_at}/.{name}"
    return fitting
