"""What a killed server held is worked on at once by the next one, long before a lease runs out."""

import sys
from pathlib import Path

from faults.leaked_tokens import Progress, issue_many, progress_of, report, wait_for
from patience import SOON_SECONDS
from processes import Place, serving

TOKENS = 1000
# One batch takes everything, so that nothing is free when the server dies.
# It stops between the claim and the work, so that the kill comes there on a machine of any speed.
STUCK_HUBLET = (sys.executable, str(Path(__file__).with_name("stuck_hublet.py")))
GREEDY = {"HUBLET_WORKER_BATCH_SIZE": "100000", "HUBLET_WORKER_LEASE_SECONDS": "3600"}


def _holds_all_that_is_left(now: Progress) -> bool:
    return now.revoked == TOKENS and now.held > 0 == now.published == now.free


def test_the_first_reaction_after_a_kill_waits_for_no_lease(place: Place) -> None:
    with serving(place, variables=GREEDY, program=STUCK_HUBLET) as server:
        report(server, issue_many(place, TOKENS))
        kill = server.process.kill
        wait_for(place, _holds_all_that_is_left, seconds=SOON_SECONDS, then=kill)
    left = progress_of(place)
    assert _holds_all_that_is_left(left)
    assert left.audit_lines == 0

    # The leases of the dead server last an hour; the next one does not wait for them.
    with serving(place):
        wait_for(place, lambda now: now.audit_lines > 0, seconds=SOON_SECONDS)
