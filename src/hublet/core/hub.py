"""Hub: the settings, keys and switches that every part of one running hub shares."""

from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum

from hublet.core.config import Settings
from hublet.core.dataclasses import dataclass
from hublet.core.sealing import KeyRing


class Switch(StrEnum):
    """What administrators can turn on and off while the hub runs."""

    remote_images = "pages.remote_images"
    app_registration = "oauth.registration"
    new_jobs = "jobs.creation"


class AnnouncementTone(StrEnum):
    info = "info"
    good = "good"
    warning = "warn"
    bad = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """A text that stands above every page until a time."""

    id: str
    text: str
    tone: AnnouncementTone
    # Whether only people who are signed in see it.
    for_signed_in: bool
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteState:
    """What administrators chose: switches that differ from the settings, and announcements."""

    switches: Mapping[str, bool] = field(default_factory=dict)
    announcements: tuple[Announcement, ...] = ()


class SiteCache:
    """The state of the site as this process knows it; `core.switches` keeps it in step."""

    def __init__(self) -> None:
        self.state = SiteState()


class ProcessState:
    """What this process knows of itself and of the others of the hub."""

    def __init__(self) -> None:
        # It still serves, but load balancers shall send requests elsewhere.
        self.is_draining = False
        # The processes that serve the API of this hub, this one included; see `core.heartbeat`.
        self.api_processes = 1
        self.when_draining: Callable[[], None] | None = None

    def drain(self) -> None:
        """Note that this process is about to stop, and let the others know."""
        if not self.is_draining and self.when_draining is not None:
            self.when_draining()
        self.is_draining = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    settings: Settings
    keys: KeyRing
    site: SiteCache = field(default_factory=SiteCache, compare=False)
    process: ProcessState = field(default_factory=ProcessState, compare=False)

    def is_on(self, switch: Switch) -> bool:
        """Tell what counts now: what an administrator chose, or else what the settings say."""
        chosen = self.site.state.switches.get(switch)
        return self.default_of(switch) if chosen is None else chosen

    def default_of(self, switch: Switch) -> bool:
        match switch:
            case Switch.remote_images:
                return self.settings.pages.remote_images
            case Switch.app_registration:
                return self.settings.oauth.registration
            case Switch.new_jobs:
                return True
