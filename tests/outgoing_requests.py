"""Calls to strangers in tests: settings, requests and a name service of a test's own."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from ipaddress import ip_network

from hublet.core.config import Settings
from hublet.core.outgoing import OutgoingRequest


def settings(*allow: str, test_mode: bool = False) -> Settings:
    settings = Settings()
    return replace(
        settings,
        server=replace(settings.server, test_mode=test_mode),
        outgoing=replace(settings.outgoing, allow=tuple(map(ip_network, allow))),
    )


def post(url: str, body: bytes = b"{}", *, deadline_seconds: float = 10.0) -> OutgoingRequest:
    return OutgoingRequest(
        method="POST",
        url=url,
        headers={"Content-Type": "application/json"},
        body=body,
        deadline_seconds=deadline_seconds,
    )


def names(*answers: Sequence[str] | OSError) -> Callable[[str], Awaitable[Sequence[str]]]:
    """A name service that gives each answer once, and the last one from then on."""
    left = list(answers)

    async def resolve(_host: str) -> Sequence[str]:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, OSError):
            raise answer
        return answer

    return resolve
