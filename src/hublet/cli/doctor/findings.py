"""What a check of the doctor found, and what to do about it."""

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    ok = "ok"
    warning = "warning"
    problem = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    check: str
    status: Status
    # A sentence; so is the advice, which only trouble needs.
    found: str
    advice: str | None = None


def ok(check: str, found: str) -> Finding:
    return Finding(check=check, status=Status.ok, found=found)


def warning(check: str, found: str, advice: str) -> Finding:
    return Finding(check=check, status=Status.warning, found=found, advice=advice)


def problem(check: str, found: str, advice: str) -> Finding:
    return Finding(check=check, status=Status.problem, found=found, advice=advice)
