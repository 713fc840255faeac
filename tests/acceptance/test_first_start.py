"""The first minutes of a hub: the box, and the public client that takes what it says."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hublet.cli.serving import FIRST_START_FILE
from patience import SOON_SECONDS
from processes import HUBLET, Place, clean_environment, serving, started

HF = str(Path(sys.executable).with_name("hf"))
ON_A_TERMINAL = (
    sys.executable,
    str(Path(__file__).with_name("terminal_program.py")),
    *HUBLET,
)
ASK_THE_LIBRARY = """
import json
from huggingface_hub import HfApi
print(json.dumps(HfApi().whoami()))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """What the first start of a hub showed in text mode."""

    place: Place
    text: str
    address: str
    user: str
    password: str
    token: str


def _value(text: str, name: str) -> str:
    found = re.search(rf"^│ {name} +(\S+) +│$", text, re.MULTILINE)
    assert found, text
    return found[1]


@pytest.fixture(scope="module")
def box(shared_place: Place) -> Iterator[Box]:
    """A hub that was started in an empty folder and runs until the last test here is done."""
    with started(shared_place, "serve", "--port", "0", program=ON_A_TERMINAL) as process:
        process.wait_for_output("Hublet is ready at")
        text = process.stdout.read_text()
        parts = {name: _value(text, name) for name in ("address", "user", "password", "token")}
        yield Box(place=shared_place, text=text, **parts)


def _ask(box: Box, *command: str, token: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program of the public client's with a home of its own, pointed at the hub."""
    variables = {
        "HF_HOME": str(box.place.folder / "client"),
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "HF_ENDPOINT": box.address,
        "HF_TOKEN": token or box.token,
        "NO_COLOR": "1",
    }
    return subprocess.run(
        command,
        env=clean_environment(variables),
        capture_output=True,
        text=True,
        timeout=2 * SOON_SECONDS,
        check=False,
    )


def test_the_box_holds_all_that_is_needed_and_nothing_else_is_printed(box: Box) -> None:
    lines = [
        "Your hub is ready. This is shown once: keep it.",
        "",
        f"address   {box.address}",
        f"user      {box.user}",
        f"password  {box.password}",
        f"token     {box.token}",
        "",
        "Try it:",
        f"  export HF_ENDPOINT={box.address}",
        f"  export HF_TOKEN={box.token}",
        "  hf auth whoami",
    ]
    width = max(map(len, lines))
    shown = [line for line in box.text.splitlines() if line.startswith(("╭", "│", "╰"))]
    assert shown == [
        f"╭{'─' * (width + 2)}╮",
        *(f"│ {line.ljust(width)} │" for line in lines),
        f"╰{'─' * (width + 2)}╯",
    ]
    assert not (box.place.data_dir / FIRST_START_FILE).exists()


def test_the_public_command_line_knows_who_the_token_belongs_to(box: Box) -> None:
    asked = _ask(box, HF, "auth", "whoami")

    assert (asked.returncode, asked.stderr) == (0, "")
    shown = [line.strip() for line in asked.stdout.splitlines()]
    assert shown[1:] == [f"user: {box.user}", f"endpoint: {box.address}"]


def test_the_public_command_line_says_that_a_wrong_token_is_wrong(box: Box) -> None:
    asked = _ask(box, HF, "auth", "whoami", token="hf_" + "x" * 34)

    assert (asked.returncode, asked.stdout) == (1, "")
    assert "Invalid user token." in asked.stderr


def test_the_public_library_knows_who_the_token_belongs_to(box: Box) -> None:
    asked = _ask(box, sys.executable, "-c", ASK_THE_LIBRARY)

    assert (asked.returncode, asked.stderr) == (0, "")
    told = json.loads(asked.stdout)
    assert told == {
        "type": "user",
        "id": told["id"],
        "name": box.user,
        "fullname": box.user,
        "avatarUrl": f"{box.address}/avatars/{told['id']}",
        "isPro": False,
        "email": None,
        "emailVerified": False,
        "canPay": False,
        "orgs": [],
        "auth": {
            "type": "access_token",
            "accessToken": {
                "displayName": "first start",
                "role": "write",
                "createdAt": told["auth"]["accessToken"]["createdAt"],
            },
        },
    }


def test_a_terminal_that_knows_only_latin_1_still_shows_the_secrets(tmp_path: Path) -> None:
    latin = {"PYTHONIOENCODING": "latin-1"}
    place, command = Place(folder=tmp_path), ("serve", "--port", "0")
    with started(place, *command, variables=latin, program=ON_A_TERMINAL) as process:
        process.wait_for_output("Hublet is ready at")

    shown = process.stdout.read_text(encoding="latin-1")
    assert re.search(r"^\| token +hf_\w+ +\|$", shown, re.MULTILINE), shown


def test_without_a_terminal_the_secrets_are_in_a_file_and_not_in_the_log(tmp_path: Path) -> None:
    place = Place(folder=tmp_path)
    file = place.data_dir / FIRST_START_FILE
    with started(place, "serve", "--port", "0") as process:
        process.wait_for("Hublet is ready at")
        said = process.stdout.read_text()
        kept = json.loads(file.read_text())

    assert said == (
        "The password and the token of admin, the first administrator, are in "
        f"{file}: keep them, and delete the file.\n"
    )
    assert sorted(kept) == ["address", "password", "token", "user"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert kept["token"] not in process.stderr.read_text()
    assert kept["password"] not in process.stderr.read_text()


def test_for_a_script_the_file_is_named_and_its_token_works(tmp_path: Path) -> None:
    place = Place(folder=tmp_path)
    with serving(place) as server, server.client(server.token) as client:
        seen = client.get("/api/whoami-v2").json()

    assert seen["name"] == server.user == "admin"
    assert json.loads(server.process.stdout.read_text()) == {
        "address": server.address,
        "user": "admin",
        "firstAdministrator": str(place.data_dir / FIRST_START_FILE),
    }
