"""Records of an app as its managers see it: name, secrets, logo."""

from dataclasses import field
from datetime import datetime

from hublet.core.dataclasses import dataclass
from hublet.oauth.records import OAuthApp

MAX_NAME = 100


def clean_name(text: str) -> str:
    """Return the name without outer blanks; a ValueError names the rule that it breaks."""
    name = " ".join(text.split())
    if not 1 <= len(name) <= MAX_NAME:
        raise ValueError(f"the name of an app has 1 to {MAX_NAME} characters")
    # Marks that turn the direction of writing would make one name look like another.
    if not name.isprintable():
        raise ValueError("the name of an app has no control characters and no invisible ones")
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecret:
    """A secret as its owner recognizes it; only a digest of its value is stored."""

    id: str
    hint: str
    created_at: datetime
    # Set when it was replaced: it works until then.
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingSecret:
    """A secret as requests are checked against it."""

    digest: str
    expires_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedApp:
    """An app as its managers see it."""

    app: OAuthApp
    # The name of who registered it.
    owner: str | None
    # The name of the organization that it is bound to.
    organization: str | None
    secrets: tuple[ClientSecret, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakedSecret:
    """A secret that was reported as leaked."""

    secret_id: str
    hint: str
    app_name: str
    # Who registered the app; nobody in particular for one that registered itself.
    owner_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Logo:
    media_type: str
    content: bytes = field(repr=False)


def logo_url(base_url: str, app_id: str) -> str:
    return f"{base_url}/oauth/logos/{app_id}"
