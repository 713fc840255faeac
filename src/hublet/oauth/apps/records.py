"""Records of apps as their managers see them: name, secrets, logo."""

from dataclasses import field
from datetime import datetime

from hublet.accounts.avatars import sniff_image
from hublet.core.light_dataclasses import dataclass
from hublet.oauth.errors import InvalidLogo, LogoTooLarge
from hublet.oauth.records import OAuthApp

MAX_NAME = 100


def clean_name(text: str) -> str:
    """Return the name without outer blanks; a ValueError tells the rule that it breaks."""
    name = " ".join(text.split())
    if not 1 <= len(name) <= MAX_NAME:
        raise ValueError(f"the name of an app has 1 to {MAX_NAME} characters")
    # Marks that turn the direction of writing would make one name look like another.
    if not name.isprintable():
        raise ValueError("the name of an app has no control characters and no invisible ones")
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecret:
    """A secret as its owner recognizes it; the value is nowhere."""

    id: str
    hint: str
    created_at: datetime
    # When it was replaced: it works on until then.
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedApp:
    """An app as those see it who may change it."""

    app: OAuthApp
    # The name of who registered it.
    owner: str | None
    # The name of the organization that it is bound to.
    organization: str | None
    secrets: tuple[ClientSecret, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakedSecret:
    """A secret that somebody found where it should not be."""

    secret_id: str
    hint: str
    app_name: str
    # Who registered the app; nobody in particular for one that registered itself.
    owner_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Logo:
    media_type: str
    content: bytes = field(repr=False)


MAX_LOGO_BYTES = 262_144


def validate_logo(content: bytes) -> Logo:
    """Return the logo that these bytes are; what the sender calls them does not count."""
    if len(content) > MAX_LOGO_BYTES:
        raise LogoTooLarge(MAX_LOGO_BYTES)
    media_type = sniff_image(content)
    if media_type is None:
        raise InvalidLogo
    return Logo(media_type=media_type, content=content)
