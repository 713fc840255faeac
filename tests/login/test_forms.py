"""Forms are taken from the page of the same session, and from nowhere else."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from hublet.core import clock
from hublet.core.config import Settings
from hublet.core.hub import Hub
from hublet.core.sealing import KeyRing
from hublet.login.errors import ForeignForm, StaleForm
from hublet.login.forms import check_form, check_origin, form_token
from hublet.login.records import Session

HUB = Hub(settings=Settings(), keys=KeyRing.new())
OWN = HUB.settings.base_url


def a_session(digest: str = "d" * 64) -> Session:
    return Session(
        id="a" * 24,
        user_id="b" * 24,
        user_name="ada",
        created_at=clock.now(),
        authenticated_at=clock.now(),
        last_used_at=clock.now(),
        expires_at=clock.now(),
        digest=digest,
    )


@dataclass(frozen=True, slots=True)
class Sent:
    """What a browser sends along with a form."""

    headers: dict[str, str] = field(default_factory=dict)
    hub: Hub = HUB

    @property
    def app(self) -> Any:
        return SimpleNamespace(state=SimpleNamespace(database=SimpleNamespace(hub=self.hub)))


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="no browser"),
        pytest.param({"sec-fetch-site": "same-origin"}, id="the same origin"),
        pytest.param({"sec-fetch-site": "same-origin", "origin": "null"}, id="of two the newer"),
        pytest.param({"sec-fetch-site": "none"}, id="typed by the person"),
        pytest.param({"origin": OWN}, id="our address"),
        pytest.param({"origin": "http://10.0.0.5:8000", "host": "10.0.0.5:8000"}, id="our host"),
    ],
)
def test_a_form_of_ours_is_taken(headers: dict[str, str]) -> None:
    check_origin(Sent(headers))


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"sec-fetch-site": "cross-site"}, id="another site"),
        pytest.param({"sec-fetch-site": "same-site"}, id="a neighbour domain"),
        pytest.param({"sec-fetch-site": "cross-site", "origin": OWN}, id="of two the newer"),
        pytest.param({"sec-fetch-site": ""}, id="something unknown"),
        pytest.param({"origin": "https://evil.example"}, id="another origin"),
        pytest.param({"origin": "null"}, id="no origin that can be named"),
        pytest.param({"origin": ""}, id="an empty origin"),
        pytest.param({"origin": OWN + ".evil.example"}, id="an origin that begins like ours"),
        pytest.param({"origin": "http://evil.example", "host": "hub.test"}, id="another host"),
        pytest.param({"origin": "http://[", "host": "hub.test"}, id="nonsense"),
    ],
)
def test_a_form_of_another_site_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(ForeignForm):
        check_origin(Sent(headers))


def test_the_token_of_a_form_fits_its_session_and_purpose() -> None:
    form = {"form_token": form_token(HUB, a_session(), "consent")}

    check_form(Sent(), form, a_session(), "consent")


def test_a_token_made_before_the_keys_were_rotated_still_fits() -> None:
    form = {"form_token": form_token(HUB, a_session(), "consent")}
    rotated = Hub(settings=HUB.settings, keys=KeyRing(keys=KeyRing.new().keys + HUB.keys.keys))

    check_form(Sent(hub=rotated), form, a_session(), "consent")


@pytest.mark.parametrize(
    "form",
    [
        pytest.param({}, id="none"),
        pytest.param({"form_token": ""}, id="an empty one"),
        pytest.param({"form_token": "ä"}, id="letters beyond ASCII"),
        pytest.param({"form_token": form_token(HUB, a_session(), "device")}, id="another purpose"),
        pytest.param({"form_token": form_token(HUB, a_session("e"), "consent")}, id="of another"),
        pytest.param(
            {
                "form_token": form_token(
                    Hub(settings=Settings(), keys=KeyRing.new()), a_session(), "consent"
                )
            },
            id="of another hub",
        ),
    ],
)
def test_another_token_is_refused(form: dict[str, str]) -> None:
    with pytest.raises(StaleForm):
        check_form(Sent(), form, a_session(), "consent")


def test_the_right_token_from_another_site_is_refused() -> None:
    form = {"form_token": form_token(HUB, a_session(), "consent")}

    with pytest.raises(ForeignForm):
        check_form(Sent({"sec-fetch-site": "cross-site"}), form, a_session(), "consent")
