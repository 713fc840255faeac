"""Git's language of pushes: what the hub offers, what a push asks, what it is told."""

import re
from collections.abc import Mapping, Sequence

import hublet
from hublet.repos.smart_http.errors import MalformedRequest
from hublet.repos.smart_http.pkt_lines import FLUSH, PacketReader, on_band, packet
from hublet.repos.smart_http.records import Command, Outcome, Push

MOST_COMMANDS = 10_000

_NO_SHA = "0" * 40
_CAPABILITIES = (
    "report-status delete-refs side-band-64k quiet atomic ofs-delta object-format=sha1 "
    f"agent=hublet/{hublet.__version__}"
)
_COMMAND = re.compile(r"([0-9a-f]{40}) ([0-9a-f]{40}) (.+)", re.DOTALL)


def advertisement(refs: Mapping[str, str]) -> bytes:
    """Return what a client hears before it pushes: where refs are, and what the hub can do."""
    first, *others = sorted(refs.items()) or [("capabilities^{}", _NO_SHA)]
    lines = [
        packet(f"{first[1]} {first[0]}\0{_CAPABILITIES}\n".encode()),
        *(packet(f"{sha} {name}\n".encode()) for name, sha in others),
    ]
    return packet(b"# service=git-receive-pack\n") + FLUSH + b"".join(lines) + FLUSH


async def read_push(packets: PacketReader) -> Push:
    """Read which refs are to move; the objects for it follow."""
    commands: list[Command] = []
    capabilities: frozenset[str] = frozenset()
    while (line := await packets.read()) is not None:
        text, _, words = _decoded(line).partition("\0")
        capabilities |= set(words.split())
        # A clone that is not whole tells where it ends; what is missing shows later anyway.
        if not text.startswith("shallow "):
            commands.append(_command(text.removesuffix("\n")))
        if len(commands) > MOST_COMMANDS:
            raise MalformedRequest(f"it moves at most {MOST_COMMANDS} refs")
    return Push(commands=tuple(commands), capabilities=capabilities)


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise MalformedRequest("names of refs are UTF-8") from None


def _command(text: str) -> Command:
    match = _COMMAND.fullmatch(text)
    if match is None:
        raise MalformedRequest("a command is an old commit, a new one and a ref")
    old, new, ref = match.groups()
    return Command(
        ref=ref,
        old_sha=None if old == _NO_SHA else old,
        new_sha=None if new == _NO_SHA else new,
    )


def report(push: Push, outcomes: Sequence[Outcome], *, unpacked: str = "ok") -> bytes:
    """Return what became of each ref, in the form that the client asked for."""
    if "report-status" not in push.capabilities:
        return b""
    lines = [packet(f"unpack {_one_line(unpacked)}\n".encode()), *map(_told, outcomes), FLUSH]
    whole = b"".join(lines)
    return on_band(1, whole) + FLUSH if "side-band-64k" in push.capabilities else whole


def _told(outcome: Outcome) -> bytes:
    ref = outcome.command.ref
    if outcome.refusal is None:
        return packet(f"ok {ref}\n".encode())
    return packet(f"ng {ref} {_one_line(outcome.refusal)}\n".encode())


def _one_line(text: str) -> str:
    return " ".join(text.split())[:1000]
