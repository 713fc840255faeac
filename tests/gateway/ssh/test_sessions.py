"""What a guest does in a job: commands, terminals, files, ports."""

import asyncio
import hashlib
import os
import socket
import sys
from pathlib import Path

import asyncssh
import httpx2
import pytest
from asyncssh.constants import PTY_ECHO, PTY_VINTR

from gateway.ssh.guests import Key, SshHarness, a_harness, a_running_job, register
from gateway.ssh.listening_jobs import a_port, listens
from patience import SOON_SECONDS
from people import Headers
from runtime.attempts import a_while, eventually, sleepers

BULK_BYTES = 20 * 2**20
# Connects from inside, and prints the answer.
SAY = """python3 -c "
import socket, sys
made = socket.create_connection(('127.0.0.1', {port}), timeout=60)
made.sendall(b'hello'); made.shutdown(socket.SHUT_WR)
sys.stdout.write(made.recv(100).decode())
" """
NOT_THERE = "Only the job itself and its network group are reached through it: name localhost."


@pytest.fixture
async def job_id(harness: SshHarness, client: httpx2.AsyncClient, ada: Headers) -> str:
    body = {"environment": {"COLOUR": "blue"}, "secrets": {"TOP": "s3cret"}}
    return await a_running_job(harness, client, ada, **body)


@pytest.fixture
async def key(harness: SshHarness) -> Key:
    return await register(harness.database, "ada")


async def test_a_command_has_both_outputs_its_input_and_its_exit_status(
    harness: SshHarness, job_id: str, key: Key
) -> None:
    async with harness.visited(job_id, key) as conn:
        ended = await conn.run("cat; echo oops >&2; exit 7", input="hello\n")

    assert (ended.stdout, ended.stderr, ended.exit_status) == ("hello\n", "oops\n", 7)


async def test_a_command_has_the_variables_of_the_job(
    harness: SshHarness, job_id: str, key: Key
) -> None:
    # The last one tells whose a plain process is; nothing may overwrite it.
    command = "echo $COLOUR $TOP $JOB_ID $HF_ENDPOINT $HUBLET_ATTEMPT; pwd"

    printed = await harness.output(
        job_id, key, command, env={"COLOUR": "red", "LANG": "C", "HUBLET_ATTEMPT": "x"}
    )

    attempt = harness.data_dir / "jobs" / job_id[:2] / job_id / "attempt-1"
    assert printed == f"blue s3cret {job_id} http://hub.test {attempt}\n{attempt}/home\n"


async def test_a_client_may_say_its_language_and_nothing_else(
    harness: SshHarness, job_id: str, key: Key
) -> None:
    env = {"LANG": "de", "LC_ALL": "C", "LD_PRELOAD": "/x.so", "PATH": "/nowhere"}

    printed = await harness.output(job_id, key, "echo $LANG $LC_ALL $LD_PRELOAD $PATH", env=env)

    assert printed == "de C /usr/local/bin:/usr/bin:/bin\n"


@pytest.mark.parametrize("name", ["TERM", "KILL", "SEGV"])
async def test_a_command_that_is_killed_says_by_what(
    harness: SshHarness, job_id: str, key: Key, name: str
) -> None:
    async with harness.visited(job_id, key) as conn:
        ended = await conn.run(f"kill -{name} $$")

    assert ended.exit_signal is not None
    assert ended.exit_signal[0] == name


async def test_a_signal_without_a_name_is_told_as_a_shell_does(
    harness: SshHarness, job_id: str, key: Key
) -> None:
    async with harness.visited(job_id, key) as conn:
        ended = await asyncio.wait_for(conn.run("kill -40 $$"), SOON_SECONDS)

    assert (ended.exit_status, ended.exit_signal) == (168, None)


async def test_a_signal_of_the_client_reaches_the_command(
    harness: SshHarness, job_id: str, key: Key
) -> None:
    async with harness.visited(job_id, key) as conn:
        process = await conn.create_process(
            "trap 'echo got; exit 3' USR1; echo on; while :; do sleep 0.05; done"
        )
        assert await process.stdout.readline() == "on\n"
        process.send_signal("USR1")
        ended = await process.wait()

    assert (ended.stdout, ended.exit_status) == ("got\n", 3)


async def test_a_terminal_is_a_device_of_its_size_and_follows_it(
    harness: SshHarness, job_id: str, key: Key
) -> None:
    script = "tty; stty size; echo $TERM; read line; stty size; echo $SSH_TTY"
    async with harness.visited(job_id, key) as conn:
        process = await conn.create_process(script, term_type="xterm-256color", term_size=(100, 40))
        before = [await process.stdout.readline() for _ in range(3)]
        process.change_terminal_size(120, 50)
        process.stdin.write("\n")
        ended = await process.wait()

    assert before == [before[0], "40 100\r\n", "xterm-256color\r\n"]
    assert before[0].startswith("/dev/pts/")
    assert str(ended.stdout).split() == ["50", "120", before[0].strip()]


async def test_a_shell_on_a_terminal_takes_keys(harness: SshHarness, job_id: str, key: Key) -> None:
    async with harness.visited(job_id, key) as conn:
        process = await conn.create_process(term_type="dumb", encoding="utf-8")
        # It asks for a command when it has set up the terminal.
        await process.stdout.read(1)
        time = a_while()
        process.stdin.write(f"sleep {time}\n")
        await eventually(lambda: len(sleepers(time)) == 1)
        process.stdin.write("\x03")
        process.stdin.write("echo $((40+2)); exit 5\n")
        ended = await asyncio.wait_for(process.wait(), SOON_SECONDS)

    assert "42" in str(ended.stdout)
    assert ended.exit_status == 5


async def test_the_end_of_input_ends_a_shell_on_a_terminal(
    harness: SshHarness, job_id: str, key: Key
) -> None:
    async with harness.visited(job_id, key) as conn:
        process = await conn.create_process(term_type="dumb")
        process.stdin.write_eof()
        ended = await asyncio.wait_for(process.wait(), SOON_SECONDS)

    assert ended.exit_status == 0


async def test_the_end_of_input_is_told_again_to_who_was_not_ready_for_it(
    harness: SshHarness, job_id: str, key: Key
) -> None:
    program = (
        "import sys, termios, time; "
        "input(); time.sleep(0.2); termios.tcflush(0, termios.TCIFLUSH); sys.stdin.read()"
    )
    async with harness.visited(job_id, key) as conn:
        command = f"{sys.executable} -c '{program}'"
        process = await conn.create_process(command, term_type="dumb")
        process.stdin.write("\n")
        process.stdin.write_eof()
        ended = await asyncio.wait_for(process.wait(), SOON_SECONDS)

    assert ended.exit_status == 0


async def test_what_the_client_sets_of_its_terminal_is_set(
    harness: SshHarness, job_id: str, key: Key
) -> None:
    modes = {PTY_ECHO: 0, PTY_VINTR: 7}

    printed = await harness.output(job_id, key, "stty -a", term_type="xterm", term_modes=modes)

    assert " -echo " in printed
    assert "intr = ^G;" in printed


async def test_twenty_megabytes_arrive_as_they_were(
    harness: SshHarness, job_id: str, key: Key
) -> None:
    data = os.urandom(BULK_BYTES)
    async with harness.visited(job_id, key) as conn:
        there = await conn.run("tee copy | sha256sum", input=data, encoding=None)
        back = await conn.run("cat copy", encoding=None)

    assert isinstance(there.stdout, bytes)
    assert there.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest()
    assert back.stdout == data


async def test_a_file_is_copied_both_ways(
    harness: SshHarness, job_id: str, key: Key, tmp_path: Path
) -> None:
    source, back = tmp_path / "source", tmp_path / "back"
    source.write_bytes(os.urandom(3_000_001))
    async with harness.visited(job_id, key) as conn, conn.start_sftp_client() as sftp:
        await sftp.put(source, "there")
        await sftp.get("there", back)
        assert (await sftp.stat("there")).size == 3_000_001

    assert back.read_bytes() == source.read_bytes()


async def test_nothing_of_a_session_outlives_it(harness: SshHarness, job_id: str, key: Key) -> None:
    time = a_while()
    script = f"setsid sleep {time} & (sleep {time} &); nohup sleep {time} >/dev/null & echo done"
    async with harness.visited(job_id, key) as conn:
        ended = await conn.run(script)

    assert ended.stdout == "done\n"
    assert sleepers(time) == []


async def test_nothing_of_a_session_outlives_its_connection(
    harness: SshHarness, job_id: str, key: Key
) -> None:
    conn = await harness.entered(job_id, key)
    time = a_while()
    await conn.create_process(f"trap '' HUP TERM; setsid sleep {time} & wait")
    await eventually(lambda: len(sleepers(time)) == 1)

    conn.abort()

    await eventually(lambda: sleepers(time) == [])


async def test_nothing_of_a_session_outlives_the_job(
    harness: SshHarness, job_id: str, key: Key
) -> None:
    conn = await harness.entered(job_id, key)
    time = a_while()
    process = await conn.create_process(f"setsid sleep {time} & wait")
    await eventually(lambda: len(sleepers(time)) == 1)
    [handle] = await harness.runner.handles()

    await harness.runner.stop(handle, grace_seconds=0)

    await asyncio.wait_for(process.wait(), SOON_SECONDS)
    await eventually(lambda: sleepers(time) == [])
    conn.abort()


async def test_a_port_of_the_job_is_reached(
    harness: SshHarness, client: httpx2.AsyncClient, ada: Headers, key: Key
) -> None:
    port = a_port()
    job_id = await a_running_job(harness, client, ada, *listens(port))
    async with harness.visited(job_id, key) as conn:
        reader, writer = await connected(conn, "localhost", port)
        writer.write(b"hello")
        writer.write_eof()
        said = await asyncio.wait_for(reader.read(), SOON_SECONDS)

    assert said == b"you said hello"


async def connected(
    conn: asyncssh.SSHClientConnection, host: str, port: int
) -> tuple[asyncssh.SSHReader[bytes], asyncssh.SSHWriter[bytes]]:
    """Connect as soon as something listens."""
    async with asyncio.timeout(SOON_SECONDS):
        while True:
            try:
                return await conn.open_connection(host, port)
            except asyncssh.ChannelOpenError:
                await asyncio.sleep(0.1)


@pytest.mark.parametrize(
    ("host", "sentence"),
    [
        ("10.0.0.1", NOT_THERE),
        ("hub.test", NOT_THERE),
        ("localhost", "Nothing at localhost listens on port {}."),
    ],
)
async def test_nothing_but_the_job_is_reached_through_it(
    harness: SshHarness, job_id: str, key: Key, host: str, sentence: str
) -> None:
    # It listens on this machine, but the job does not.
    with socket.create_server(("127.0.0.1", 0)) as others:
        port = others.getsockname()[1]
        async with harness.visited(job_id, key) as conn:
            with pytest.raises(asyncssh.ChannelOpenError) as refusal:
                await conn.open_connection(host, port)
            assert refusal.value.reason == sentence.format(port)


async def test_a_port_in_the_job_leads_to_the_guest(
    harness: SshHarness, job_id: str, key: Key
) -> None:
    async def answer(reader: asyncssh.SSHReader[bytes], writer: asyncssh.SSHWriter[bytes]) -> None:
        writer.write(b"you said " + await reader.read())
        writer.close()

    async with harness.visited(job_id, key) as conn:
        listener = await conn.start_server(lambda *_: answer, "localhost", 0)
        port = listener.get_port()
        said = await conn.run(SAY.format(port=port), check=True)
        # It is there for the job, and only as long as the guest is.
        refused = await conn.run(SAY.format(port=80))
    await eventually(lambda: not is_open(port))

    assert (said.stdout, refused.exit_status) == ("you said hello", 1)


def is_open(port: int) -> bool:
    with socket.socket() as made:
        return made.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("port", [80, 1023])
async def test_a_port_that_no_job_may_have_leads_nowhere(
    harness: SshHarness, job_id: str, key: Key, port: int
) -> None:
    async with harness.visited(job_id, key) as conn:
        with pytest.raises(asyncssh.ChannelListenError):
            await conn.start_server(lambda *_: None, "", port)


async def test_a_connection_has_so_many_sessions(
    harness: SshHarness, job_id: str, key: Key
) -> None:
    async with harness.visited(job_id, key) as conn:
        await asyncio.gather(*[conn.create_process("sleep 50") for _ in range(50)])
        with pytest.raises(asyncssh.ChannelOpenError, match="Session refused"):
            await conn.create_process("true")


async def test_what_a_job_has_no_use_for_is_refused(
    harness: SshHarness, job_id: str, key: Key
) -> None:
    async with harness.visited(job_id, key) as conn:
        with pytest.raises(asyncssh.ChannelOpenError):
            await conn.open_unix_connection("/run/dbus/socket")
        with pytest.raises(asyncssh.ChannelOpenError):
            await conn.create_process(subsystem="nonsense")
        with pytest.raises(asyncssh.ChannelOpenError):
            await conn.create_process("xterm", x11_forwarding=True, x11_display="localhost:0")


async def test_a_job_of_another_machine_says_so(harness: SshHarness, job_id: str, key: Key) -> None:
    async with harness.database.transaction() as conn:
        await conn.execute("UPDATE job_attempts SET runner = 'other' WHERE job_id = $1", job_id)
    async with harness.visited(job_id, key) as guest:
        ended = await guest.run("true")

    assert ended.exit_status == 254
    assert str(ended.stderr).startswith("The job is not running on the machine that answers here")


async def test_the_hub_is_known_again(harness: SshHarness, job_id: str, key: Key) -> None:
    known = await asyncssh.get_server_host_key("127.0.0.1", harness.port, config=None)
    async with a_harness(harness.database) as other:
        again = await asyncssh.get_server_host_key("127.0.0.1", other.port, config=None)

    assert known is not None
    assert again is not None
    assert known.public_data == again.public_data
