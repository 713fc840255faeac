"""Checks of the way that mails go."""

from urllib.parse import urlsplit

from hublet.cli.doctor.findings import Finding, ok, problem
from hublet.core.config import Settings
from hublet.core.mail import PostUnavailable, folder_of, post_of

_CHECK = "mail"


async def check(settings: Settings) -> Finding:
    """Say where mails go; a mail server is greeted, and logged in to, but gets no mail."""
    if settings.mail.smtp_url is None:
        return ok(_CHECK, f"No mail server is set; mails are files in {folder_of(settings)}.")
    server = _shown(settings.mail.smtp_url)
    try:
        async with post_of(settings) as post:
            await post.check()
    except PostUnavailable as error:
        return problem(
            _CHECK,
            f"{server} cannot be used: {error}",
            "Correct mail.smtp_url or the server; mails wait for three days.",
        )
    return ok(_CHECK, f"{server} takes mails from {settings.mail.sender}.")


def _shown(url: str) -> str:
    """Return the URL without the login in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
