"""The checks of an authorization request, in the order in which they are made.

Until the redirect URI is proven to be one of the app's, what is wrong stays on a page of ours.
From then on the app is told.
"""

import re

from hublet.core.ids import is_object_id
from hublet.oauth.authorize.parameters import AuthorizationParameters
from hublet.oauth.authorize.records import AuthorizationRequest, Prompt
from hublet.oauth.errors import (
    ClientIdNeeded,
    OAuthError,
    RedirectedError,
    RedirectUriNeeded,
    RedirectUriUnknown,
    invalid_request,
    invalid_target,
)
from hublet.oauth.pkce import is_challenge
from hublet.oauth.records import OAuthApp
from hublet.oauth.redirect_uris import RedirectTarget, describe_difference, matches
from hublet.oauth.scopes import scopes_requested_by

MAX_STATE_BYTES = 8192
MAX_NONCE_LENGTH = 512
MAX_ORGANIZATIONS = 20

_SECONDS = re.compile(r"[0-9]{1,10}")


def client_id_of(asked: AuthorizationParameters) -> str:
    client_id = asked.find("client_id")
    if client_id is None or "client_id" in asked.repeated() or not client_id.isprintable():
        raise ClientIdNeeded
    return client_id


def check_request(
    app: OAuthApp, asked: AuthorizationParameters, *, base_url: str
) -> AuthorizationRequest:
    target = RedirectTarget(redirect_uri=_redirect_uri(app, asked))
    try:
        target = RedirectTarget(redirect_uri=target.redirect_uri, state=_state(asked))
        _check_repetition(asked)
        _check_response_type(asked)
        _check_request_objects(asked)
        _check_resource(asked, base_url)
        return AuthorizationRequest(
            app=app,
            target=target,
            challenge=_challenge(app, asked),
            scopes=scopes_requested_by(app, asked.find("scope")),
            nonce=_nonce(asked),
            prompts=_prompts(asked),
            max_age=_seconds(asked, "max_age"),
            signed_in_after=_seconds(asked, "signed_in_after"),
            organization_ids=_organization_ids(asked),
        )
    except OAuthError as error:
        raise RedirectedError(error.error, error.description, target=target) from None


def _redirect_uri(app: OAuthApp, asked: AuthorizationParameters) -> str:
    requested = asked.find("redirect_uri")
    if requested is None or "redirect_uri" in asked.repeated():
        raise RedirectUriNeeded
    for registered in app.redirect_uris:
        if matches(registered, requested, dynamic_query=app.dynamic_query):
            return requested
    raise RedirectUriUnknown(
        requested, differences=[describe_difference(each, requested) for each in app.redirect_uris]
    )


def _state(asked: AuthorizationParameters) -> str | None:
    states = [value for name, value in asked.pairs if name == "state"]
    if len(states) > 1:
        raise invalid_request("state must not be repeated.")
    if states and len(states[0].encode()) > MAX_STATE_BYTES:
        raise invalid_request(f"state must have at most {MAX_STATE_BYTES} bytes.")
    return states[0] if states else None


def _check_repetition(asked: AuthorizationParameters) -> None:
    if repeated := asked.repeated():
        raise invalid_request(f"{', '.join(repeated)} must not be repeated.")


def _check_response_type(asked: AuthorizationParameters) -> None:
    response_type = asked.find("response_type")
    if response_type is None:
        raise invalid_request("response_type is required.")
    if response_type != "code":
        raise OAuthError("unsupported_response_type", "response_type must be code.")
    if asked.find("response_mode") not in {None, "query"}:
        raise invalid_request("response_mode must be query.")


def _check_request_objects(asked: AuthorizationParameters) -> None:
    for name in ("request", "request_uri", "registration"):
        if asked.find(name) is not None:
            raise OAuthError(f"{name}_not_supported", f"{name} is not supported.")


def _check_resource(asked: AuthorizationParameters, base_url: str) -> None:
    # RFC 8707: tokens are for this hub, and for nobody else.
    for resource in asked.all_of("resource"):
        if resource != base_url and not resource.startswith(f"{base_url}/"):
            raise invalid_target("resource must be an address of this hub.")


def _challenge(app: OAuthApp, asked: AuthorizationParameters) -> str | None:
    challenge, method = asked.find("code_challenge"), asked.find("code_challenge_method")
    if challenge is None:
        if method is not None:
            raise invalid_request("code_challenge_method needs a code_challenge.")
        if not app.confidential:
            raise invalid_request("code_challenge is required for an app without a secret.")
        return None
    # RFC 7636, 4.3: without a method it would be plain, which shows the verifier to everybody.
    if method != "S256":
        raise invalid_request("code_challenge_method must be S256.")
    if not is_challenge(challenge):
        raise invalid_request("code_challenge must be the SHA-256 of the verifier in base64url.")
    return challenge


def _nonce(asked: AuthorizationParameters) -> str | None:
    nonce = asked.find("nonce")
    if nonce is not None and (len(nonce) > MAX_NONCE_LENGTH or not nonce.isprintable()):
        raise invalid_request(f"nonce must have at most {MAX_NONCE_LENGTH} printable characters.")
    return nonce


def _prompts(asked: AuthorizationParameters) -> frozenset[Prompt]:
    names = set((asked.find("prompt") or "").split(" ")) - {""}
    if not names <= set(Prompt):
        raise invalid_request("prompt must be of none, login, consent and select_account.")
    if Prompt.none in names and len(names) > 1:
        raise invalid_request("prompt: none stands alone.")
    return frozenset(map(Prompt, names))


def _seconds(asked: AuthorizationParameters, name: str) -> int | None:
    text = asked.find(name)
    if text is not None and _SECONDS.fullmatch(text) is None:
        raise invalid_request(f"{name} must be a number of seconds.")
    return None if text is None else int(text)


def _organization_ids(asked: AuthorizationParameters) -> frozenset[str]:
    ids = frozenset(each for text in asked.all_of("orgIds") for each in text.split(","))
    if not all(map(is_object_id, ids)):
        raise invalid_request("orgIds must be ids of organizations, separated by commas.")
    if len(ids) > MAX_ORGANIZATIONS:
        raise invalid_request(f"orgIds must have at most {MAX_ORGANIZATIONS} organizations.")
    return ids
