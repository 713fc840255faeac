"""Somebody in a container: the engine's exec, behind the descriptors that every attachment has."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hublet.runtime.errors import CannotAttach
from hublet.runtime.records import AttachRequest, Terminal
from patience import SOON_SECONDS
from runtime.attempts import a_while, eventually, sleepers
from runtime.docker.exec_engine import Engine, an_engine

pytest.importorskip("aiodocker", reason="hublet[docker] is not installed")

from hublet.runtime.docker.container_exec import ContainerAttachment, attach_to_container

HAS_SFTP_SERVER = Path("/usr/lib/openssh/sftp-server").exists()


@pytest.fixture
async def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engine]:
    path = tmp_path / "engine.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    async with an_engine(path) as engine:
        yield engine


async def output(attachment: ContainerAttachment) -> tuple[int, bytes, bytes]:
    code = await asyncio.wait_for(attachment.ended(), SOON_SECONDS)
    assert attachment.stderr is not None
    said = os.read(attachment.stdout, 65536), os.read(attachment.stderr, 65536)
    attachment.close()
    await attachment.wait_closed()
    return code, *said


async def test_a_command_has_its_outputs_its_input_and_its_exit_status(engine: Engine) -> None:
    script = "cat; echo oops >&2; echo $COLOUR; exit 7"
    wish = AttachRequest(argv=("/bin/sh", "-c", script), environment={"COLOUR": "blue"})
    attachment = await attach_to_container("abc", wish)
    os.write(attachment.stdin, b"typed\n")
    attachment.end_input()

    assert await output(attachment) == (7, b"typed\nblue\n", b"oops\n")
    begun = engine.requests[0]
    assert (begun["Cmd"], begun["Tty"], begun["AttachStdin"]) == (
        ["/bin/sh", "-c", script],
        False,
        True,
    )
    assert begun["Env"][0] == "COLOUR=blue"


async def test_a_signal_reaches_what_was_begun(engine: Engine) -> None:
    script = "trap 'echo got; exit 3' USR1; echo on; while :; do sleep 0.05; done"
    attachment = await attach_to_container(
        "abc", AttachRequest(argv=("/bin/sh", "-c", script), environment={})
    )
    await eventually(lambda: readable(attachment) == b"on\n")

    attachment.send(signal.SIGUSR1)

    code, said, _ = await output(attachment)
    # The shell waits for what it sleeps in, which the signal ends.
    assert (code, said.splitlines()[-1]) == (3, b"got")
    assert engine.requests[1]["Cmd"][-1] == str(int(signal.SIGUSR1))


def readable(attachment: ContainerAttachment) -> bytes:
    try:
        return os.read(attachment.stdout, 100)
    except BlockingIOError:
        return b""


async def test_nothing_is_left_of_a_visit_that_is_closed(engine: Engine) -> None:
    time = a_while()
    argv = ("/bin/sh", "-c", f"setsid sleep {time} & sleep {time}")
    attachment = await attach_to_container("abc", AttachRequest(argv=argv, environment={}))
    await eventually(lambda: len(sleepers(time)) == 2)

    attachment.close()

    await eventually(lambda: sleepers(time) == [])
    assert engine.requests[-1]["Cmd"][-1] == "9"
    await attachment.wait_closed()


async def test_a_terminal_gets_its_size(engine: Engine) -> None:
    terminal = Terminal(size=(100, 40, 0, 0))
    wish = AttachRequest(argv=("/bin/true",), environment={"TERM": "xterm"}, terminal=terminal)
    attachment = await attach_to_container("abc", wish)
    await eventually(
        lambda: [sorted(each.split("&")) for each in engine.resized] == [["h=40", "w=100"]]
    )
    attachment.close()
    await attachment.wait_closed()

    assert engine.requests[0]["Tty"] is True


async def test_without_a_server_of_files_the_image_is_named(engine: Engine) -> None:
    attachment = await attach_to_container("abc", AttachRequest(sftp=True, environment={}))
    attachment.end_input()
    code, _, errors = await output(attachment)

    expected = (0, b"") if HAS_SFTP_SERVER else (127, b"The image of the job has no sftp-server.\n")
    assert (code, errors) == expected
    assert engine.requests[0]["Cmd"][:2] == ["/bin/sh", "-c"]


async def test_an_engine_that_does_not_answer_lets_nobody_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")

    with pytest.raises(CannotAttach, match="the engine says"):
        await attach_to_container("abc", AttachRequest(environment={}))
