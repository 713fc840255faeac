"""What a push asks for, and what becomes of it."""

from hublet.core.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A ref that is to move; no old sha: created, no new one: deleted."""

    # As git spells it: refs/heads/main.
    ref: str
    old_sha: str | None
    new_sha: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    commands: tuple[Command, ...]
    capabilities: frozenset[str]

    @property
    def is_atomic(self) -> bool:
        return "atomic" in self.capabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    command: Command
    # Why the ref stays where it is; None when it moved.
    refusal: str | None = None
