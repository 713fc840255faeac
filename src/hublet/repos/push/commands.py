"""Commands of a push: the ref advertisement, the commands that follow, and the status report."""

import re
from collections.abc import Mapping, Sequence

import hublet
from hublet.core.dataclasses import dataclass
from hublet.repos.errors import MalformedRequest
from hublet.repos.push.wire import FLUSH, PacketReader, on_band, packet

MOST_COMMANDS = 10_000

_NO_SHA = "0" * 40
_CAPABILITIES = (
    "report-status delete-refs side-band-64k quiet atomic ofs-delta object-format=sha1 "
    f"agent=hublet/{hublet.__version__}"
)
_COMMAND = re.compile(r"([0-9a-f]{40}) ([0-9a-f]{40}) (.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefCommand:
    """A ref that is to move; no old sha: created, no new one: deleted."""

    # As git spells it: refs/heads/main.
    ref: str
    old_sha: str | None
    new_sha: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    commands: tuple[RefCommand, ...]
    capabilities: frozenset[str]

    @property
    def is_atomic(self) -> bool:
        return "atomic" in self.capabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutcome:
    command: RefCommand
    # Why the ref stays where it is; None when it moved.
    refusal: str | None = None


def advertisement(refs: Mapping[str, str]) -> bytes:
    """Return the ref advertisement: the refs, and the capabilities of the hub."""
    first, *others = sorted(refs.items()) or [("capabilities^{}", _NO_SHA)]
    lines = [
        packet(f"{first[1]} {first[0]}\0{_CAPABILITIES}\n".encode()),
        *(packet(f"{sha} {name}\n".encode()) for name, sha in others),
    ]
    return packet(b"# service=git-receive-pack\n") + FLUSH + b"".join(lines) + FLUSH


async def read_push(packets: PacketReader) -> Push:
    """Read the commands of a push; the objects follow."""
    commands: list[RefCommand] = []
    capabilities: frozenset[str] = frozenset()
    while (line := await packets.read()) is not None:
        text, _, words = _decode(line).partition("\0")
        capabilities |= set(words.split())
        # A shallow clone names its ends; missing objects are found later anyway.
        if not text.startswith("shallow "):
            commands.append(_command(text.removesuffix("\n")))
        if len(commands) > MOST_COMMANDS:
            raise MalformedRequest(f"it moves at most {MOST_COMMANDS} refs")
    return Push(commands=tuple(commands), capabilities=capabilities)


def _decode(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise MalformedRequest("names of refs are UTF-8") from None


def _command(text: str) -> RefCommand:
    match = _COMMAND.fullmatch(text)
    if match is None:
        raise MalformedRequest("a command is an old commit, a new one and a ref")
    old, new, ref = match.groups()
    return RefCommand(
        ref=ref,
        old_sha=None if old == _NO_SHA else old,
        new_sha=None if new == _NO_SHA else new,
    )


def report(push: Push, outcomes: Sequence[CommandOutcome], *, unpacked: str = "ok") -> bytes:
    """Return the status report, in the form that the client's capabilities ask for."""
    if "report-status" not in push.capabilities:
        return b""
    lines = [
        packet(f"unpack {_one_line(unpacked)}\n".encode()),
        *map(_status_line, outcomes),
        FLUSH,
    ]
    whole = b"".join(lines)
    return on_band(1, whole) + FLUSH if "side-band-64k" in push.capabilities else whole


def _status_line(outcome: CommandOutcome) -> bytes:
    ref = outcome.command.ref
    if outcome.refusal is None:
        return packet(f"ok {ref}\n".encode())
    return packet(f"ng {ref} {_one_line(outcome.refusal)}\n".encode())


def _one_line(text: str) -> str:
    return " ".join(text.split())[:1000]
