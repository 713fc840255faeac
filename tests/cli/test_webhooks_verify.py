"""Checking a captured request."""

import time
from pathlib import Path

import pytest

from cli.hublet_command import Hublet
from hublet.webhooks.delivery.signing import headers_of, key_of

SECRET = "s3cret"
BODY = '{"event":{"action":"update"},"name":"Größe"}'.encode()


def captured(
    folder: Path, *, body: bytes = BODY, age: int = 0, without: str | None = None
) -> list[str]:
    """Write a request as the hub would have sent it; return the flags that name it."""
    headers = headers_of(
        BODY,
        delivery_id="6a5f0c2e9d1b4a7788990011",
        timestamp=int(time.time()) - age,
        attempt=1,
        secret=SECRET,
        keys=[key_of(SECRET)],
    )
    lines = [f"{name}: {value}" for name, value in headers.items() if name.lower() != without]
    (folder / "headers.txt").write_text("\r\n".join(["POST /hook HTTP/1.1", *lines, ""]))
    (folder / "body.json").write_bytes(body)
    return ["--headers", str(folder / "headers.txt"), "--body", str(folder / "body.json")]


def test_a_genuine_request_is_told(run: Hublet, tmp_path: Path) -> None:
    flags = captured(tmp_path)

    told = run("webhooks", "verify", *flags, "--secret", "other", "--secret", SECRET)

    assert (told.code, told.out, told.err) == (0, "", "It is genuine.\n")


def test_the_secret_may_stand_in_the_environment(
    run: Hublet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBHOOK_SECRET", SECRET)

    told = run("webhooks", "verify", *captured(tmp_path, age=86_400), "--json")

    assert (told.code, told.json) == (0, {"valid": True, "reason": None})


@pytest.mark.parametrize(
    ("changes", "flags", "reason"),
    [
        pytest.param({}, ["--secret", "wrong"], "Invalid webhook secret.", id="another secret"),
        pytest.param(
            {"body": BODY + b" "}, ["--secret", SECRET], "Invalid webhook signature.",
            id="a body that was changed",
        ),
        pytest.param(
            {"age": 600}, ["--secret", SECRET, "--max-age", "300"],
            "The webhook-timestamp is too far from the time here.",
            id="an old one",
        ),
        pytest.param(
            {"without": "webhook-id"}, ["--secret", SECRET],
            "A webhook-signature needs webhook-id and webhook-timestamp, in seconds.",
            id="a header that is missing",
        ),
    ],
)  # fmt: skip
def test_a_request_that_is_not_is_told_with_the_reason(
    run: Hublet, tmp_path: Path, changes: dict[str, object], flags: list[str], reason: str
) -> None:
    request = captured(tmp_path, **changes)  # type: ignore[arg-type]

    told = run("webhooks", "verify", *request, *flags)
    quiet = run("webhooks", "verify", *request, *flags, "-q")

    assert (told.code, told.out) == (1, "")
    assert told.err == f"It is not to be trusted: {reason}\n"
    assert (quiet.code, quiet.out, quiet.err) == (1, "", "")


def test_wrong_usage_is_told(run: Hublet, tmp_path: Path) -> None:
    flags = captured(tmp_path)

    without = run("webhooks", "verify", *flags)
    missing = run("webhooks", "verify", *flags[:2], "--body", str(tmp_path / "no"), "--secret", "x")

    assert (without.code, missing.code) == (2, 2)
    assert "Give --secret, or set WEBHOOK_SECRET." in without.err
    assert "cannot be read: No such file or directory." in " ".join(missing.err.split())
