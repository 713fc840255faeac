"""What is known of an app beside what others see of it."""

from datetime import datetime

from hublet.core.light_dataclasses import dataclass
from hublet.oauth.records import App


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A secret as its owner recognizes it; the value is nowhere."""

    id: str
    hint: str
    created_at: datetime
    # When it was replaced: it works on until then.
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedApp:
    """An app as those see it who may change it."""

    app: App
    # The name of who registered it.
    owner: str | None
    # The name of the organization that it is bound to.
    organization: str | None
    secrets: tuple[Secret, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaked:
    """A secret that somebody found where it should not be."""

    secret_id: str
    hint: str
    app_name: str
    # Who registered the app; nobody in particular for one that registered itself.
    owner_id: str | None
