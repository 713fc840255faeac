"""Which bytes may be a logo."""

from hublet.accounts.avatars import sniff_image
from hublet.oauth.apps.logos.errors import LogoTooLarge, NotALogo
from hublet.oauth.apps.logos.records import Logo

MAX_LOGO_BYTES = 262_144


def checked_logo(content: bytes) -> Logo:
    """Return the logo that these bytes are; what the sender calls them does not count."""
    if len(content) > MAX_LOGO_BYTES:
        raise LogoTooLarge(MAX_LOGO_BYTES)
    media_type = sniff_image(content)
    if media_type is None:
        raise NotALogo
    return Logo(media_type=media_type, content=content)
