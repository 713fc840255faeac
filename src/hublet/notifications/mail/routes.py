"""Routes of the links in mails: pages with one button, because programs follow links, too."""

from typing import Any

from starlette.responses import Response

from hublet.core.errors import NotFound
from hublet.core.http import Conn, Db, Router
from hublet.core.pages import Templates, page_response
from hublet.notifications.mail import links
from hublet.notifications.preferences import service as preferences
from hublet.notifications.preferences.switches import SWITCHES, PreferenceKey

links_router = Router()

_templates = Templates(__package__ or "")
_PAGE = {"content": {"text/html": {"schema": {"type": "string"}}}}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "A page.", **_PAGE},
    404: {"description": "A page that says what is wrong with the link.", **_PAGE},
}


@links_router.get(
    "/unsubscribe/{token}", tags=["notifications"], response_class=Response, responses=_RESPONSES
)
async def ask_to_unsubscribe(database: Db, token: str) -> Response:
    """Ask whether mails of one kind are to stop; the link stands in each of them."""
    try:
        subscription = links.read_subscription(database.hub, token)
    except NotFound as error:
        return _error_page(error)
    sentence = f"These are mails about {_subject_of(subscription.key)}. All others still come."
    return _page("Stop these mails?", sentence, button="Stop them")


@links_router.post(
    "/unsubscribe/{token}", tags=["notifications"], response_class=Response, responses=_RESPONSES
)
async def unsubscribe(conn: Conn, token: str) -> Response:
    """Stop mails of one kind, without a login; mail programs call it with one click."""
    try:
        subscription = links.read_subscription(conn.hub, token)
    except NotFound as error:
        return _error_page(error)
    await preferences.turn_off(conn, subscription.user_id, subscription.key)
    sentence = f"No more mails come about {_subject_of(subscription.key)}. All others still do."
    return _page("They are stopped", sentence)


@links_router.get(
    "/verify-email/{token}", tags=["users"], response_class=Response, responses=_RESPONSES
)
async def ask_to_verify_email(database: Db, token: str) -> Response:
    """Ask whether an e-mail address belongs to the account; the link is sent to the address."""
    try:
        proof = links.read_proof(database.hub, token)
    except NotFound as error:
        return _error_page(error)
    sentence = f"{proof.address} was added to an account of this hub."
    return _page("Is this your address?", sentence, button="Yes, it is mine")


@links_router.post(
    "/verify-email/{token}", tags=["users"], response_class=Response, responses=_RESPONSES
)
async def verify_email(conn: Conn, token: str) -> Response:
    """Take an e-mail address as verified; doing it again changes nothing."""
    try:
        proof = links.read_proof(conn.hub, token)
        await links.verify_address(conn, proof)
    except NotFound as error:
        return _error_page(error)
    return _page("It is verified", f"Mails of this hub can come to {proof.address}.")


def _subject_of(key: PreferenceKey) -> str:
    return SWITCHES[key].about or str(key)


def _error_page(error: NotFound) -> Response:
    return _page("This link does not work", error.message, status=error.status)


def _page(title: str, sentence: str, *, button: str | None = None, status: int = 200) -> Response:
    body = _templates.render("question.html", title=title, sentence=sentence, button=button)
    return page_response(body, status=status)
