"""What a receiver can check: with the library of Standard Webhooks as the judge."""

import base64
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from hublet.webhooks.delivery.signing import headers_of, key_of, sign

BODY = '{"event":{"action":"update"},"name":"é"}'.encode()
GENERATED = "whsec_" + base64.b64encode(b"k" * 24).decode()


def headers(*secrets: str, attempt: int = 1) -> dict[str, str]:
    """Return the headers of an attempt that is made now: the library takes none that is old."""
    return headers_of(
        BODY,
        delivery_id="6" * 24,
        timestamp=int(datetime.now(UTC).timestamp()),
        attempt=attempt,
        secret=secrets[0] if secrets else None,
        keys=[key_of(secret) for secret in secrets],
    )


def as_the_library_wants(secret: str) -> str:
    """A secret that is just text is its own key; the library only takes base64."""
    return secret if secret == GENERATED else base64.b64encode(secret.encode()).decode()


@pytest.mark.parametrize("secret", ["s3cret", "with space ~", GENERATED])
def test_a_signature_is_what_standard_webhooks_expects(secret: str) -> None:
    judge = Webhook(as_the_library_wants(secret))
    assert judge.verify(BODY, headers(secret)) == {"event": {"action": "update"}, "name": "é"}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(lambda _: {"webhook-id": "7" * 24}, id="another id"),
        pytest.param(lambda at: {"webhook-timestamp": str(at - 1)}, id="another time"),
        pytest.param(lambda _: {"webhook-signature": "v1,AAAA"}, id="another signature"),
    ],
)
def test_nothing_that_is_signed_can_be_changed(changes: Callable[[int], dict[str, str]]) -> None:
    sent = headers("s3cret")
    changed = sent | changes(int(sent["webhook-timestamp"]))
    with pytest.raises(WebhookVerificationError):
        Webhook(as_the_library_wants("s3cret")).verify(BODY, changed)
    with pytest.raises(WebhookVerificationError):
        Webhook(as_the_library_wants("s3cret")).verify(BODY + b" ", headers("s3cret"))


def test_while_secrets_overlap_both_sign_and_the_new_one_is_first() -> None:
    sent = headers("new", "old")
    for secret in ("new", "old"):
        Webhook(as_the_library_wants(secret)).verify(BODY, sent)
    first, second = sent["webhook-signature"].split(" ")
    at = int(sent["webhook-timestamp"])
    assert first == sign(b"new", delivery_id="6" * 24, timestamp=at, body=BODY)
    assert second == sign(b"old", delivery_id="6" * 24, timestamp=at, body=BODY)
    assert sent["X-Webhook-Secret"] == "new"


def test_without_a_secret_nothing_is_signed() -> None:
    sent = headers(attempt=3)

    assert sent == {
        "content-type": "application/json",
        "webhook-id": "6" * 24,
        "webhook-timestamp": sent["webhook-timestamp"],
        "X-Webhook-Attempt": "3",
    }


@pytest.mark.parametrize(
    ("secret", "key"),
    [
        pytest.param("s3cret", b"s3cret", id="text is its own key"),
        pytest.param(GENERATED, b"k" * 24, id="what stands behind whsec_ is decoded"),
        pytest.param("whsec_not base64!", b"whsec_not base64!", id="unless it is not base64"),
        pytest.param("whsec_c2VjcmV0czE", b"secrets1", id="also without what only fills it up"),
        pytest.param("whsec_abcde", b"whsec_abcde", id="unless a part is missing"),
        pytest.param("whsec_", b"whsec_", id="or nothing"),
    ],
)
def test_the_key_of_a_secret(secret: str, key: bytes) -> None:
    assert key_of(secret) == key
