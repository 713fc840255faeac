"""Clients: which app a client id means, which app sends a request, and how it proves that
(RFC 6749, 2.3).
"""

from base64 import b64decode
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from urllib.parse import unquote_plus

from hublet.core.clock import from_micros, micros, monotonic
from hublet.core.database import Database, Reader
from hublet.core.database.engine import CREDENTIALS_CHANNEL
from hublet.core.dataclasses import dataclass
from hublet.oauth.apps import service as apps
from hublet.oauth.client_metadata.service import resolve_document_app
from hublet.oauth.errors import InvalidClient, invalid_request
from hublet.oauth.records import COMMAND_LINE_CLIENT_ID, AppKind, OAuthApp

_EPOCH = from_micros(0)
# Stands in for an app that does not exist, so that looking at its secrets takes as long.
_UNKNOWN_APP = OAuthApp(
    id="",
    client_id="",
    kind=AppKind.registered,
    name="",
    token_seconds=0,
    created_at=_EPOCH,
    updated_at=_EPOCH,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """Client id and secret as a request states them."""

    client_id: str | None = None
    secret: str | None = None
    by_header: bool = False
    # The header without form-decoding, where that makes a difference.
    undecoded: tuple[str, str] | None = None

    @property
    def is_given(self) -> bool:
        return self.client_id is not None

    def pairs(self) -> list[tuple[str, str | None]]:
        """Return each pair that may be meant: many clients do not form-encode the header."""
        given = [(self.client_id or "", self.secret)]
        return given if self.undecoded is None else [*given, self.undecoded]


def read_credentials(
    authorization: Sequence[str], parameters: Mapping[str, str]
) -> ClientCredentials:
    """Read the credentials from header and body: both must name the same app, one has the secret."""
    client_id, secret = parameters.get("client_id"), parameters.get("client_secret")
    if not authorization:
        if secret is not None and client_id is None:
            raise invalid_request("client_id is required with a client_secret.")
        return ClientCredentials(client_id=client_id, secret=secret)
    if len(authorization) > 1:
        raise invalid_request("Authorization must be sent once.")
    if secret is not None:
        raise invalid_request("client_secret must not be sent beside an Authorization header.")
    credentials = _parse_basic(authorization[0])
    if client_id is not None and client_id not in [stated for stated, _ in credentials.pairs()]:
        raise invalid_request("client_id must be the one of the Authorization header.")
    return credentials


def _parse_basic(header: str) -> ClientCredentials:
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "basic":
        raise InvalidClient("Authorization must be Basic, with the client id and the secret.")
    try:
        text = b64decode(value.strip(" "), validate=True).decode()
    except ValueError:
        raise InvalidClient("Authorization: what follows Basic must be Base64.") from None
    raw_id, colon, raw_secret = text.partition(":")
    if not colon:
        raise InvalidClient("Authorization must have a colon between client id and secret.")
    # RFC 6749, 2.3.1: both are form-encoded before they are joined.
    decoded = unquote_plus(raw_id), unquote_plus(raw_secret)
    raw = raw_id, raw_secret
    return ClientCredentials(
        client_id=decoded[0],
        secret=decoded[1],
        by_header=True,
        undecoded=raw if raw != decoded else None,
    )


class ClientCache:
    """Authenticates apps; those that proved who they are, by what they sent, for at most a second.

    Only credentials that work are remembered, so guesses cannot fill it, and every refusal is the same
    work: an unknown app, a wrong secret and a missing one cannot be told apart. Whatever was remembered
    before an app or a secret changed counts for nothing once that is committed in this process, or
    heard of from another.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        settings = database.hub.settings.tokens
        self._seconds = settings.cache_seconds
        self._size = settings.cache_size
        # Until when they are remembered, and when the secret expires.
        self._known: OrderedDict[ClientCredentials, tuple[float, AuthenticatedApp]] = OrderedDict()
        self._open = ExitStack()
        self._changes = self._open.enter_context(database.subscribe(CREDENTIALS_CHANNEL))
        self._wakes = 0

    async def authenticate(self, credentials: ClientCredentials) -> OAuthApp:
        """Return the app that sends a request.

        An app with a secret must prove it, one without must not try to. An unknown app, a wrong secret
        and a missing one get the same response after the same work.
        """
        known = self._find_known(credentials)
        if known is not None and not known.is_past:
            return known.app
        if not credentials.is_given:
            raise InvalidClient("client_id is required.")
        # What was read before a change must not be remembered after it.
        wakes = self._changes.wakes
        async with self._database.read() as conn:
            found = await _find_app(conn, credentials)
        if self._seconds and wakes == self._changes.wakes:
            self._known[credentials] = (monotonic() + self._seconds, found)
            self._known.move_to_end(credentials)
            if len(self._known) > self._size:
                self._known.popitem(last=False)
        return found.app

    def _find_known(self, credentials: ClientCredentials) -> "AuthenticatedApp | None":
        # Looking costs nothing and leaves no moment between a change and its effect.
        if self._wakes != self._changes.wakes:
            self._known.clear()
            self._wakes = self._changes.wakes
        until, found = self._known.get(credentials, (0.0, None))
        return found if until > monotonic() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticatedApp:
    app: OAuthApp
    # When the secret expires that was shown.
    expires_at: int | None = None

    @property
    def is_past(self) -> bool:
        return self.expires_at is not None and self.expires_at <= micros()


async def _find_app(conn: Reader, credentials: ClientCredentials) -> AuthenticatedApp:
    for client_id, secret in credentials.pairs():
        app = await apps.find_app(conn, client_id)
        fitting = None
        if secret is not None:
            fitting = await apps.find_secret_of(conn, app or _UNKNOWN_APP, secret)
        if app is not None and (fitting is not None if app.confidential else secret is None):
            expires_at = None if fitting is None else fitting.expires_at
            return AuthenticatedApp(app=app, expires_at=expires_at)
    raise InvalidClient


async def resolve_app(
    database: Database, client_id: str, *, may_be_stale: bool = False
) -> OAuthApp:
    """Return the app, with the metadata document that it may have as it is now.

    Do not call it in a transaction. `may_be_stale` is for token requests: when the document is
    out of reach, a copy of the last day will do for them, and never for a new consent.
    """
    async with database.read() as conn:
        app = await apps.find_app(conn, client_id)
    if app is None and client_id == COMMAND_LINE_CLIENT_ID:
        # A hub that has not started anew since it learned of this app gets it now.
        async with database.transaction() as conn:
            await apps.provision_command_line(conn)
            app = await apps.find_app(conn, client_id)
    if app is not None and app.kind is not AppKind.document:
        return app
    return await resolve_document_app(database, client_id, may_be_stale=may_be_stale)
