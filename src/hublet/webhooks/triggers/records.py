"""Records of triggers: an event as webhooks see it, and the deliveries it is to cause."""

from dataclasses import field

from hublet.core.dataclasses import dataclass
from hublet.events import RepoSnapshot
from hublet.webhooks.records import Domain


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """An event as webhooks see it: which ones it may concern, and the payload."""

    domain: Domain
    # As the payload names it: repo, repo.content, repo.config, discussion, discussion.comment.
    scope: str
    action: str
    # The repository where it is now; only owners who may see it there are notified.
    repo: RepoSnapshot
    # A webhook must watch one of these.
    targets: tuple[str, ...]
    payload: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A webhook that watches one of the targets in the right domain."""

    webhook_id: str
    owner_id: str
    state: str
    # As in the table.
    private_owners: str | None
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggeredEvent:
    """A trigger that was stored, without its payload."""

    id: str
    repo: RepoSnapshot
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    webhook_id: str
    state: str
    reason: str | None = None
    ping: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """The deliveries of an event that are still to be added, target by target."""

    event_id: str
    domain: str
    targets: tuple[str, ...]
    # The last webhook of the first target that was processed.
    after: str = ""
