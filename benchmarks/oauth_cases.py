"""What is asked of an OAuth server: by whom, with what, and how the peer calls the same."""

from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from benchmarks.figures import Goal
from benchmarks.oauth_load import VALUE, OAuthRequest
from benchmarks.oauth_tenant import EMAIL, REDIRECT_URI, VERIFIER
from hublet.tokens.records import Scope

GOAL = Goal(floor=1.2, aim=3.0, more_is_better=True, of="ratio")

_CODE = (
    f"grant_type=authorization_code&code={VALUE}&code_verifier={VERIFIER}"
    f"&redirect_uri={quote(REDIRECT_URI, safe='')}"
)
_EXCHANGE = (
    "grant_type=urn:ietf:params:oauth:grant-type:token-exchange"
    "&subject_token_type=urn:hub:token-type:user-email&scope=read-repos"
    f"&subject_token={quote(EMAIL)}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One thing that both can do."""

    name: str
    # What the values are, under the peer's names; `Client` is what an app proves itself with.
    kind: Literal["AuthorizationCode", "RefreshToken", "AccessToken", "Client"]
    scopes: tuple[Scope, ...] = (Scope.read_repos,)
    values_are: Literal["spent", "replaced", "kept"]
    path: str = "/oauth/token"
    their_path: str = "/token"
    form: str = ""
    # Where the peer is asked for something else.
    their_form: str | None = None
    # `Basic` and the app, unless the value stands there.
    authorization: str | None = None
    goal: Goal | None = GOAL

    def request(self, app: str) -> OAuthRequest:
        return self._request(app, path=self.path, form=self.form)

    def their_request(self, app: str) -> OAuthRequest:
        form = self.form if self.their_form is None else self.their_form
        return self._request(app, path=self.their_path, form=form)

    def _request(self, app: str, *, path: str, form: str) -> OAuthRequest:
        headers = {"authorization": self.authorization or f"Basic {app}"}
        return OAuthRequest(path=path, headers=headers, form=form, values_are=self.values_are)


CASES = (
    Case(name="code", kind="AuthorizationCode", values_are="spent", form=_CODE),
    Case(
        name="code with ID token",
        kind="AuthorizationCode",
        scopes=(Scope.openid, Scope.read_repos),
        values_are="spent",
        form=_CODE,
    ),
    Case(
        name="refresh",
        kind="RefreshToken",
        values_are="replaced",
        form=f"grant_type=refresh_token&refresh_token={VALUE}",
    ),
    Case(
        name="token exchange",
        kind="Client",
        values_are="kept",
        form=_EXCHANGE,
        # It has no such grant; the nearest is a token for the client itself.
        their_form="grant_type=client_credentials",
        authorization=f"Basic {VALUE}",
    ),
    Case(
        name="introspection",
        kind="AccessToken",
        values_are="kept",
        path="/oauth/introspect",
        their_path="/token/introspection",
        form=f"token={VALUE}",
    ),
    Case(
        name="userinfo",
        kind="AccessToken",
        scopes=(Scope.openid,),
        values_are="kept",
        path="/oauth/userinfo",
        their_path="/me",
        authorization=f"Bearer {VALUE}",
    ),
)
