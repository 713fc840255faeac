"""What a space runs, as far as that can be told without building an image of it."""

from typing import Any

from hublet.jobs.records import Spec
from hublet.jobs.runners.records import CannotRun
from hublet.repos.records import Repo

_DEFAULT_FILE = "app.py"


def image_of(name: str) -> str:
    """Return the name under which the operator maps an image for a space."""
    return f"spaces/{name}"


def argv_of(spec: Spec, space: Repo, card: dict[str, Any] | None) -> tuple[str, ...]:
    """Return the command of the job, or else what the card of the space says to run."""
    if spec.command is not None:
        return (*spec.command, *(spec.arguments or ()))
    said = card or {}
    sdk = said.get("sdk") or space.sdk
    if sdk in {"docker", "static"}:
        raise CannotRun(_REASONS[sdk].format(space.full_name))
    file = said.get("app_file")
    file = file if isinstance(file, str) and file else _DEFAULT_FILE
    start = ("streamlit", "run") if sdk == "streamlit" else ("python",)
    return (*start, file, *(spec.arguments or ()))


_REASONS = {
    "docker": "the space {} is made by its Dockerfile, which this hub does not build: "
    "give the job a command",
    "static": "the space {} is static and has nothing to run: give the job a command",
}
