"""Sends the mails that waited long enough."""

from collections.abc import Sequence
from datetime import timedelta

from hublet.core import clock
from hublet.core.database import Database, DatabaseUnavailable
from hublet.core.logs import get_logger
from hublet.core.mail import LetterDelayed, LetterRefused, Post, PostUnavailable, post_of
from hublet.notifications.mail import queueing, store
from hublet.notifications.mail.letters.composing import compose
from hublet.notifications.mail.records import Mail

log = get_logger("mail")

# A mail that cannot go is tried again when it is twice as old, within these bounds.
_SHORTEST_WAIT = timedelta(seconds=1)
_LONGEST_WAIT = timedelta(hours=1)
# What is older fails as any task does, and is parked in the end.
_TRIED_FOR = timedelta(days=3)


async def send(database: Database, mail_ids: Sequence[str]) -> None:
    """Send these mails, each once; those that cannot go now are planned anew."""
    async with database.transaction() as conn:
        mails = await store.close(conn, mail_ids)
    left = await _send_all(database, mails)
    if not left:
        return
    wait = wait_after(clock.now() - min(mail.created_at for mail in left))
    async with database.transaction() as conn:
        await queueing.plan(conn, [mail.id for mail in left], delay=wait)
    log.warning("mails wait", count=len(left), seconds=round(wait.total_seconds()))


def wait_after(age: timedelta) -> timedelta:
    if age > _TRIED_FOR:
        raise PostUnavailable("The mail server has not taken these mails for three days.")
    return min(max(age, _SHORTEST_WAIT), _LONGEST_WAIT)


async def _send_all(database: Database, mails: Sequence[Mail]) -> list[Mail]:
    """Send what can be sent; return what has to wait."""
    delayed: list[Mail] = []
    broken: Exception | None = None
    async with post_of(database.hub.settings) as post:
        for place, mail in enumerate(mails):
            try:
                await _send(database, post, mail)
            except LetterDelayed as error:
                log.warning("mail delayed", mail=mail.id, reason=str(error))
                delayed.append(mail)
            except PostUnavailable as error:
                log.warning("mail cannot be sent", reason=str(error))
                delayed += mails[place:]
                break
            except DatabaseUnavailable:
                raise
            except Exception as error:
                # A mail that cannot be written must not hold up those behind it.
                log.exception("mail failed", mail=mail.id, kind=mail.kind)
                broken = error
    if broken is not None:
        raise broken
    return delayed


async def _send(database: Database, post: Post, mail: Mail) -> None:
    async with database.read() as conn:
        letter = await compose(conn, mail)
    if letter is not None:
        try:
            await post.send(letter)
            log.info("mail sent", mail=mail.id, kind=mail.kind, key=mail.key)
        except LetterRefused as error:
            log.warning("mail refused", mail=mail.id, kind=mail.kind, reason=str(error))
    async with database.transaction() as conn:
        await store.remove(conn, [mail.id])
