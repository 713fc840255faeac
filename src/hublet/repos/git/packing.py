"""Putting many small files of a bare repository into few large ones."""

from pathlib import Path

from hublet.repos.git import processes

# Git itself begins at these numbers too.
MOST_LOOSE = 6700
MOST_PACKS = 50
# What nothing points to may belong to a change that is just being written.
KEPT = "2.weeks.ago"


def is_needed(folder: Path) -> bool:
    packs = sum(1 for _ in (folder / "objects" / "pack").glob("*.pack"))
    return packs > MOST_PACKS or _about_how_many_loose(folder) > MOST_LOOSE


def _about_how_many_loose(folder: Path) -> int:
    # Objects spread evenly over 256 folders, so one of them tells enough.
    try:
        return 256 * sum(1 for _ in (folder / "objects" / "17").iterdir())
    except FileNotFoundError:
        return 0


async def pack(folder: Path) -> None:
    """Pack what refs reach and drop what nothing has pointed to for long.

    Git's own list of refs must be current. Readers and writers go on meanwhile.
    """
    await processes.run(
        folder,
        *("-c", "pack.threads=1", "repack", "-q", "-d", "-l", "-A"),
        f"--unpack-unreachable={KEPT}",
    )
    await processes.run(folder, "prune", f"--expire={KEPT}")
