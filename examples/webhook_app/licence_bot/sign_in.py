"""Sign in with the hub: authorization code with PKCE."""

import base64
import hashlib
import hmac
import secrets
from typing import Annotated
from urllib.parse import urlencode

import httpx2
from fastapi import APIRouter, Cookie, HTTPException, Request
from fastapi.responses import RedirectResponse

from licence_bot.settings import Settings

# The cookie by which a browser that comes back is known, and how long it may take.
_STATE = "sign_in_state"
_SECONDS = 600


def sign_in_routes(settings: Settings) -> APIRouter:
    router = APIRouter()
    # A real app keeps both where all of its processes find them.
    begun: dict[str, str] = {}
    signed_in: dict[str, str] = {}

    @router.get("/")
    def who_am_i(session: Annotated[str, Cookie()] = "") -> dict[str, str | None]:
        return {"user": signed_in.get(session)}

    # Whoever comes back must be who left: else one could be signed in to a stranger's account.
    @router.get("/login")
    def login(request: Request) -> RedirectResponse:
        state, verifier = secrets.token_urlsafe(16), secrets.token_urlsafe(48)
        begun[state] = verifier
        digest = hashlib.sha256(verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": settings.client_id,
            "redirect_uri": str(request.url_for("callback")),
            "scope": "openid profile",
            "state": state,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        answer = RedirectResponse(f"{settings.hub}/oauth/authorize?{urlencode(query)}")
        answer.set_cookie(_STATE, state, max_age=_SECONDS, httponly=True, samesite="lax")
        return answer

    @router.get("/callback")
    def callback(
        request: Request,
        code: str,
        state: str,
        left_with: Annotated[str, Cookie(alias=_STATE)] = "",
    ) -> RedirectResponse:
        is_the_same = hmac.compare_digest(left_with.encode(), state.encode())
        verifier = begun.pop(state, None) if is_the_same else None
        if verifier is None:
            raise HTTPException(400, "Nobody here asked for this; please begin again.")
        name = _name_behind(settings, code, verifier, str(request.url_for("callback")))
        session = secrets.token_urlsafe(32)
        signed_in[session] = name
        answer = RedirectResponse("/")
        answer.delete_cookie(_STATE)
        answer.set_cookie("session", session, httponly=True, samesite="lax")
        return answer

    return router


def _name_behind(settings: Settings, code: str, verifier: str, redirect_uri: str) -> str:
    """Change the code for a token, and ask whose it is."""
    with httpx2.Client(base_url=settings.hub) as http:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        answer = http.post(
            "/oauth/token", data=form, auth=(settings.client_id, settings.client_secret)
        )
        if answer.is_error:
            raise HTTPException(502, "The hub does not take this code.")
        bearer = {"Authorization": f"Bearer {answer.json()['access_token']}"}
        person = http.get("/oauth/userinfo", headers=bearer).raise_for_status().json()
    return str(person["preferred_username"])
