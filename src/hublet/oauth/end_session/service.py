"""Rules of signing out for an app: whom it may mean, and where it may send them."""

from hublet.core.database import Reader
from hublet.core.light_dataclasses import dataclass
from hublet.login.records import Session
from hublet.oauth.apps import service as apps
from hublet.oauth.end_session.hints import Hint, read_hint
from hublet.oauth.redirect_uris import matches, with_parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRequest:
    """What an app asks for, as it was sent."""

    id_token_hint: str | None = None
    client_id: str | None = None
    post_logout_redirect_uri: str | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAnswer:
    # Whether the person need not be asked: the app shows the ID token of this very session.
    certain: bool
    # Where to go afterwards; None: to a page of ours.
    leads_to: str | None


async def answer_to(conn: Reader, session: Session | None, asked: EndRequest) -> EndAnswer:
    hint = await read_hint(conn, asked.id_token_hint)
    return EndAnswer(
        certain=session is not None and hint is not None and _means(hint, session),
        leads_to=await _target(conn, asked, hint),
    )


def _means(hint: Hint, session: Session) -> bool:
    return hint.user_id == session.user_id and hint.session_id in {None, session.id}


async def _target(conn: Reader, asked: EndRequest, hint: Hint | None) -> str | None:
    """Return where the app may send people: to what it registered, and nowhere else."""
    uri = asked.post_logout_redirect_uri
    client_id = hint.client_id if hint else asked.client_id
    if uri is None or client_id is None or asked.client_id not in {None, client_id}:
        return None
    app = await apps.find_app(conn, client_id)
    if app is None or not any(matches(known, uri) for known in app.redirect_uris):
        return None
    return with_parameters(uri, {"state": asked.state}) if asked.state else uri
