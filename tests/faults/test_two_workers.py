"""Workers in several processes share the work, and one of them is killed."""

from collections.abc import Callable
from pathlib import Path

from faults.leaked_tokens import (
    audited_tokens,
    done,
    issue_many,
    report,
    when_idle,
    workers_that_hold_tasks,
)
from faults.locked_database import PATIENT, locked_tables
from patience import SOON_SECONDS
from processes import Place, serving, wait_until, working

TOKENS = 3000


def test_workers_share_the_work_and_a_killed_one_costs_nothing(
    fresh_url: Callable[[], str], tmp_path: Path
) -> None:
    url = fresh_url()
    place = Place(folder=tmp_path, database_url=url)
    with (
        serving(place, variables=PATIENT) as server,
        working(place, variables=PATIENT) as one,
        working(place, variables=PATIENT) as other,
    ):
        values = issue_many(place, TOKENS)
        # Until both are in the middle of their work nobody gets any further.
        with locked_tables(url, "audit_log"):
            report(server, values)
            _wait_until_both_work(place, {one.name, other.name})
            other.process.kill()
        assert when_idle(place, seconds=10 * SOON_SECONDS) == done(TOKENS)
        assert len(audited_tokens(place)) == TOKENS
        # Workers that wait for each other's rows in a circle are cut short by PostgreSQL.
        said = server.process.stderr.read_text() + one.process.stderr.read_text()
        assert "deadlock" not in said


def _wait_until_both_work(place: Place, names: set[str]) -> None:
    seen: set[str] = set()

    def have_both_been_seen() -> bool:
        seen.update(workers_that_hold_tasks(place))
        return names <= seen

    wait_until(have_both_been_seen, seconds=SOON_SECONDS)
