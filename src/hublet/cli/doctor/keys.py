"""Checks of the key ring."""

from hublet.cli.doctor.findings import Finding, Status, ok, problem, warning
from hublet.core.config import Settings
from hublet.core.database import Reader
from hublet.core.opening import load_keys
from hublet.core.sealing import KeyRing, KeyRingError
from hublet.first_start import keys_fit

_CHECK = "keys"
_FILE = "secret.keys"


def find_ring(settings: Settings) -> KeyRing | Finding:
    """Read the ring, or tell why there is none; unlike a start, this does not make one."""
    path = settings.database.data_dir / _FILE
    if settings.keys.ring is None and not path.exists():
        return warning(_CHECK, f"There is no {path}.", "The first hublet serve makes it.")
    try:
        return load_keys(settings)
    except KeyRingError as error:
        return problem(_CHECK, str(error), "No token can be checked until it is mended.")


def alone(settings: Settings, ring: KeyRing | Finding) -> Finding:
    """Tell of the ring when no database can be compared with it."""
    if isinstance(ring, Finding):
        return ring
    return ok(_CHECK, f"{_count(ring)} in {_source(settings)}.")


async def check(conn: Reader, ring: KeyRing | Finding) -> Finding:
    """Tell whether the ring, or a stand-in for one that is missing, fits the database."""
    fits = await keys_fit(conn)
    settings = conn.hub.settings
    if isinstance(ring, Finding) and (fits or ring.status is Status.problem):
        return ring
    if not isinstance(ring, Finding) and fits:
        return ok(_CHECK, f"{_count(ring)} in {_source(settings)}; the database fits.")
    return problem(
        _CHECK,
        f"The keys this database was written with are not in {_source(settings)}.",
        f"Restore the {_FILE} that belongs to it: without it no stored token works.",
    )


def _source(settings: Settings) -> str:
    if settings.keys.ring is not None:
        return "the setting keys.ring"
    return str(settings.database.data_dir / _FILE)


def _count(ring: KeyRing) -> str:
    return f"{len(ring.keys)} key{'' if len(ring.keys) == 1 else 's'}"
