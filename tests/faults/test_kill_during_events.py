"""A server is killed in the middle of 2,000 events: each has its effect, and has it once."""

from faults.leaked_tokens import (
    audited_tokens,
    done,
    issue_many,
    progress_of,
    report,
    wait_for,
    when_idle,
)
from processes import Place, serving

TOKENS = 2_000
# So many are reported before each kill. The last ones wait for the end: a test that is stopped for a
# moment finds no server with all its work done.
FIRST, SECOND, THIRD = 800, 1_400, 1_800
PATIENCE_SECONDS = 240


def test_each_revocation_happens_once_although_the_server_is_killed_three_times(
    place: Place,
) -> None:
    with serving(place) as server:
        values = issue_many(place, TOKENS)
        report(server, values[:FIRST])
        # Right after the last answer: nothing but the promise may be kept yet.
        server.process.kill()
    _run_until(place, audit_lines=TOKENS // 10, reports=values[FIRST:SECOND])
    _run_until(place, audit_lines=TOKENS // 2, reports=values[SECOND:THIRD])

    with serving(place) as server:
        report(server, values[THIRD:])
        assert when_idle(place, seconds=PATIENCE_SECONDS) == done(TOKENS)
        assert len(audited_tokens(place)) == TOKENS


def _run_until(place: Place, *, audit_lines: int, reports: list[str]) -> None:
    """Let a server work until so many lines are written, and kill it in the middle of the rest."""
    with serving(place) as server:
        report(server, reports)
        wait_for(
            place,
            lambda now: now.audit_lines >= audit_lines,
            seconds=PATIENCE_SECONDS,
            then=server.process.kill,
        )
    assert audit_lines <= progress_of(place).audit_lines < TOKENS
