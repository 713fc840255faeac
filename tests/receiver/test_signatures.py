"""Who is let in: a secret, a signature, or both; with the library of Standard Webhooks as the judge."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook

from hublet.receiver import Refusal, verify
from hublet.webhooks.delivery.signing import headers_of, key_of

BODY = '{"event":{"action":"update"},"name":"é"}'.encode()
NOW = 1_794_732_963
GENERATED = "whsec_" + base64.b64encode(b"k" * 24).decode()

NO_SECRET = Refusal(status=401, reason="x-webhook-secret header not set.")
WRONG_SECRET = Refusal(status=403, reason="Invalid webhook secret.")
NO_SIGNATURE = Refusal(status=401, reason="webhook-signature header not set.")
WRONG_SIGNATURE = Refusal(status=403, reason="Invalid webhook signature.")
UNREADABLE = Refusal(
    status=403, reason="A webhook-signature needs webhook-id and webhook-timestamp, in seconds."
)
TOO_OLD = Refusal(status=403, reason="The webhook-timestamp is too far from the time here.")


def sent(*signers: str, secret: str | None = None, at: int = NOW, **changes: str) -> dict[str, str]:
    """Return headers signed by these secrets; `webhook_id=…` and the like change one of them."""
    headers = headers_of(
        BODY,
        delivery_id="6" * 24,
        timestamp=at,
        attempt=1,
        secret=secret,
        keys=[key_of(each) for each in signers],
    )
    return headers | {name.replace("_", "-"): value for name, value in changes.items()}


@pytest.mark.parametrize(
    ("headers", "refusal"),
    [
        pytest.param({"X-Webhook-Secret": "coal"}, None, id="the secret"),
        pytest.param({"x-webhook-secret": "steam"}, None, id="another of our secrets"),
        pytest.param({}, NO_SECRET, id="nothing"),
        pytest.param({"x-webhook-secret": "soot"}, WRONG_SECRET, id="a wrong secret"),
        pytest.param({"x-webhook-secret": ""}, WRONG_SECRET, id="an empty secret"),
        pytest.param({"x-webhook-secret": "coal "}, WRONG_SECRET, id="nearly the secret"),
        pytest.param({"x-webhook-secret": "köhle☃"}, WRONG_SECRET, id="one that is not ASCII"),
        pytest.param(sent("coal"), None, id="a signature alone"),
        pytest.param(sent("steam", secret="steam"), None, id="both"),
        pytest.param(sent("new", "coal", secret="new"), None, id="rotated: the old one signs too"),
        pytest.param(sent("soot", secret="coal"), WRONG_SIGNATURE, id="secret, forged signature"),
        pytest.param(sent("soot", secret="soot"), WRONG_SECRET, id="all by somebody else"),
        pytest.param(sent("soot"), WRONG_SIGNATURE, id="a forged signature alone"),
        pytest.param(sent("coal", webhook_id="7" * 24), WRONG_SIGNATURE, id="another id"),
        pytest.param(sent("coal", webhook_id=""), UNREADABLE, id="no id"),
        pytest.param(sent("coal", webhook_timestamp="soon"), UNREADABLE, id="no number"),
        pytest.param(sent("coal", webhook_timestamp="²"), UNREADABLE, id="no digit of ours"),
        pytest.param(sent("coal", webhook_timestamp="9" * 5000), UNREADABLE, id="a huge number"),
        pytest.param(sent("coal", webhook_timestamp=str(NOW + 1)), WRONG_SIGNATURE, id="moved"),
        pytest.param(sent("coal", webhook_signature="v1"), WRONG_SIGNATURE, id="no comma"),
        pytest.param(sent("coal", webhook_signature="v1,☃ v1,é"), WRONG_SIGNATURE, id="no base64"),
        pytest.param(sent("coal", webhook_signature=""), WRONG_SIGNATURE, id="an empty one"),
        pytest.param(sent("coal", at=NOW - 300), None, id="just young enough"),
        pytest.param(sent("coal", at=NOW - 301), TOO_OLD, id="too old"),
        pytest.param(sent("coal", at=NOW + 300), None, id="a clock that is a little fast"),
        pytest.param(sent("coal", at=NOW + 301), TOO_OLD, id="from the future"),
        pytest.param(sent("coal", secret="coal", at=NOW - 301), TOO_OLD, id="the secret, but old"),
    ],
)
def test_only_who_knows_a_secret_is_let_in(
    headers: dict[str, str], refusal: Refusal | None
) -> None:
    assert verify(headers, BODY, secrets=["coal", "steam"], now=NOW) == refusal


def test_a_changed_body_is_noticed() -> None:
    headers = sent("coal", secret="coal")

    assert verify(headers, BODY + b" ", secrets=["coal"], now=NOW) == WRONG_SIGNATURE


@pytest.mark.parametrize(
    ("headers", "refusal"),
    [
        pytest.param({"x-webhook-secret": "coal"}, NO_SIGNATURE, id="the secret is not enough"),
        pytest.param({}, NO_SIGNATURE, id="nothing"),
        pytest.param(sent("coal"), None, id="a signature"),
    ],
)
def test_a_signature_can_be_required(headers: dict[str, str], refusal: Refusal | None) -> None:
    told = verify(headers, BODY, secrets=["coal"], require_signature=True, now=NOW)

    assert told == refusal


@pytest.mark.parametrize(
    ("tolerance", "refusal"),
    [
        pytest.param(None, None, id="any age"),
        pytest.param(60, TOO_OLD, id="a minute"),
        pytest.param(62, None, id="just enough"),
    ],
)
def test_the_window_can_be_chosen(tolerance: float | None, refusal: Refusal | None) -> None:
    headers = sent("coal", at=NOW - 61)

    assert verify(headers, BODY, secrets=["coal"], tolerance_seconds=tolerance, now=NOW) == refusal


def test_without_secrets_everybody_is_let_in() -> None:
    assert verify({}, BODY, secrets=[]) is None
    assert verify(sent("soot", secret="soot"), BODY, secrets=[]) is None


def test_a_text_is_no_list_of_secrets() -> None:
    with pytest.raises(TypeError, match="secrets is a list of secrets"):
        verify({"x-webhook-secret": "c"}, BODY, secrets="coal")


def test_without_a_time_it_is_the_time_of_now() -> None:
    current = int(datetime.now(UTC).timestamp())

    assert verify(sent("coal", at=current), BODY, secrets=["coal"]) is None
    assert verify(sent("coal", at=current - 400), BODY, secrets=["coal"]) == TOO_OLD


@given(key=st.binary(min_size=1, max_size=64), body=st.text(max_size=200))
def test_what_standard_webhooks_signs_is_let_in(key: bytes, body: str) -> None:
    secret = "whsec_" + base64.b64encode(key).decode()
    moment = datetime(2026, 11, 15, tzinfo=UTC) + timedelta(seconds=len(body))
    signature = Webhook(secret).sign("msg_1", moment, body)
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": f"v1a,other {signature}",
    }

    assert verify(headers, body.encode(), secrets=[secret], now=moment.timestamp()) is None
    assert verify(headers, b"x" + body.encode(), secrets=[secret], now=moment.timestamp())


@pytest.mark.parametrize("secret", ["coal & steam", GENERATED])
def test_what_our_hub_signs_is_let_in_there_and_here(secret: str) -> None:
    current = int(datetime.now(UTC).timestamp())
    headers = sent(secret, at=current)
    as_they_want = secret if secret == GENERATED else base64.b64encode(secret.encode()).decode()

    assert Webhook(as_they_want).verify(BODY, headers) == {
        "event": {"action": "update"},
        "name": "é",
    }
    assert verify(headers, BODY, secrets=[secret]) is None
