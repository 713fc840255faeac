"""What a killed server held is worked on at once by the next one, long before a lease runs out."""

from faults.leaked_tokens import Progress, issue_many, progress_of, report, wait_for
from processes import Place, serving

TOKENS = 1000
# One batch takes everything, so that nothing is free when the server dies.
GREEDY = {"HUBLET_WORKER_BATCH_SIZE": "100000", "HUBLET_WORKER_LEASE_SECONDS": "3600"}


def _holds_all_that_is_left(now: Progress) -> bool:
    return now.revoked == TOKENS and now.held > 0 == now.published == now.free


def test_the_first_reaction_after_a_kill_waits_for_no_lease(place: Place) -> None:
    with serving(place, variables=GREEDY) as server:
        report(server, issue_many(place, TOKENS))
        kill = server.process.kill
        wait_for(place, _holds_all_that_is_left, seconds=60, then=kill)
    left = progress_of(place)
    assert _holds_all_that_is_left(left)
    assert left.audit_lines == 0

    # The leases of the dead server last an hour; the next one does not wait for them.
    with serving(place):
        wait_for(place, lambda now: now.audit_lines > 0, seconds=60)
