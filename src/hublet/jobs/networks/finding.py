"""Others in the network of an attempt, by their names."""

from pathlib import Path

from hublet.jobs.networks import hosts
from hublet.jobs.networks.ledger import Ledger


def addresses_of(data_dir: Path, folder: Path, name: str) -> list[str]:
    """Return who has a name in the network that an attempt is in; nobody where it is in none.

    Looked up in the hub's own file, which is the attempt's /etc/hosts: nothing of a job has a say
    in it, and nothing runs in the job. Blocks.
    """
    ledger = Ledger.of(data_dir)
    for home in ledger.homes():
        if ledger.has(home, folder):
            return _found_in(home / hosts.NAME, name)
    return []


def _found_in(file: Path, name: str) -> list[str]:
    try:
        lines = file.read_text().splitlines()
    except FileNotFoundError:
        # The last one has just left.
        return []
    words = [line.split() for line in lines]
    return [found[0] for found in words if name in found[1:]]
