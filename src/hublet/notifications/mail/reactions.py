"""What a worker does about mail."""

from typing import Any

from hublet.core.database import Connection, Database
from hublet.core.outbox import reacts_to
from hublet.core.queue import handles, handles_slowly
from hublet.events import EmailAdded, RepoContentUpdated
from hublet.notifications.mail import digest, queueing, sending, tags, verification


@handles_slowly(queueing.SEND)
async def send_mails(database: Database, body: dict[str, Any]) -> None:
    await sending.send(database, body["mail_ids"])


@handles(digest.BEGIN)
async def begin_digest(conn: Connection, _body: dict[str, Any]) -> None:
    await digest.begin(conn)


@handles(digest.GO_ON)
async def go_on_with_digest(conn: Connection, body: dict[str, Any]) -> None:
    await digest.go_on(conn, day=body["day"], after=body["after"])


@reacts_to(RepoContentUpdated)
async def begin_with_tags(conn: Connection, event: RepoContentUpdated) -> None:
    await tags.begin(conn, event)


@handles(tags.TELL, reads=tags.NewTags)
async def tell_of_tags(conn: Connection, news: tags.NewTags) -> None:
    await tags.tell(conn, news)


@reacts_to(EmailAdded)
async def ask_for_proof(conn: Connection, event: EmailAdded) -> None:
    await verification.ask(conn, email_id=event.email_id, user_id=event.user_id)


@handles_slowly(verification.SEND)
async def send_link(database: Database, body: dict[str, Any]) -> None:
    await verification.send(database, email_id=body["email_id"])
