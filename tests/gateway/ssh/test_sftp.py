"""The server of a job's files: what clients ask for, and what no client should send."""

import os
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import httpx2
import pytest
from asyncssh.constants import FILEXFER_TYPE_SYMLINK

from gateway.ssh.guests import SshHarness, a_running_job, register
from hublet.runtime.attach.sftp_server import serve
from people import Headers


@pytest.fixture
async def sftp(
    harness: SshHarness, client: httpx2.AsyncClient, ada: Headers
) -> AsyncIterator[asyncssh.SFTPClient]:
    job_id = await a_running_job(harness, client, ada)
    key = await register(harness.database, "ada")
    async with harness.visited(job_id, key) as conn, conn.start_sftp_client() as sftp:
        yield sftp


async def test_folders_are_made_listed_and_removed(sftp: asyncssh.SFTPClient) -> None:
    await sftp.mkdir("a")
    for number in range(250):
        async with sftp.open(f"a/{number}", "w") as file:
            await file.write(str(number))

    entries = {str(entry.filename): entry async for entry in sftp.scandir("a")}

    assert entries.keys() == {".", "..", *map(str, range(250))}
    assert entries["123"].attrs.size == 3
    assert str(entries["123"].longname).startswith("-rw-r--r--    1 ")
    with pytest.raises(asyncssh.SFTPFailure, match="Directory not empty"):
        await sftp.rmdir("a")
    await sftp.rmtree("a")
    assert not await sftp.exists("a")


async def test_a_name_is_changed_and_taken_over(sftp: asyncssh.SFTPClient) -> None:
    for name in ("one", "two"):
        async with sftp.open(name, "w") as file:
            await file.write(name)

    with pytest.raises(asyncssh.SFTPFailure, match="File exists"):
        await sftp.rename("one", "two")
    await sftp.posix_rename("one", "two")

    assert not await sftp.exists("one")
    async with sftp.open("two") as file:
        assert await file.read() == "one"


async def test_links_lead_where_they_say(sftp: asyncssh.SFTPClient) -> None:
    async with sftp.open("file", "w") as file:
        await file.write("text")
    await sftp.symlink("file", "soft")
    await sftp.link("file", "hard")

    assert await sftp.readlink("soft") == "file"
    assert (await sftp.lstat("soft")).type == FILEXFER_TYPE_SYMLINK
    assert (await sftp.stat("soft")).size == 4
    assert await sftp.realpath("soft") == await sftp.realpath("file")
    await sftp.remove("file")
    async with sftp.open("hard") as file:
        assert await file.read() == "text"


async def test_attributes_are_set(sftp: asyncssh.SFTPClient) -> None:
    async with sftp.open("file", "w", asyncssh.SFTPAttrs(permissions=0o640)) as file:
        await file.write("0123456789")
        await file.truncate(4)
        await file.fsync()
        assert (await file.stat()).size == 4
    await sftp.utime("file", (1, 2))
    await sftp.chmod("file", 0o600)

    found = await sftp.stat("file")

    assert (found.size, found.permissions, found.atime, found.mtime) == (4, 0o100600, 1, 2)


async def test_a_file_is_added_to_and_made_anew(sftp: asyncssh.SFTPClient) -> None:
    for mode, text in (("w", "one"), ("a", " two"), ("x", "")):
        if mode == "x":
            with pytest.raises(asyncssh.SFTPFailure, match="File exists"):
                await sftp.open("file", mode)
            continue
        async with sftp.open("file", mode) as file:
            await file.write(text)
    async with sftp.open("file") as file:
        assert await file.read() == "one two"
    async with sftp.open("file", "w") as file:
        await file.write("three")
    assert (await sftp.stat("file")).size == 5


@pytest.mark.parametrize("path", ["nowhere", "nowhere/below", "/etc/passwd/below"])
async def test_what_is_not_there_is_said(sftp: asyncssh.SFTPClient, path: str) -> None:
    with pytest.raises(asyncssh.SFTPNoSuchFile):
        await sftp.stat(path)


async def test_what_is_no_folder_is_not_listed(sftp: asyncssh.SFTPClient) -> None:
    with pytest.raises(asyncssh.SFTPError):
        await sftp.listdir("/etc/passwd")


def answers(*packets: bytes, target_first: bool = False) -> list[bytes]:
    """Return what the server answers before the client hangs up."""
    (incoming, theirs), (ours, outgoing) = os.pipe(), os.pipe()
    os.write(theirs, b"".join(packets))
    os.close(theirs)
    serve(incoming, outgoing, target_first=target_first)
    os.close(outgoing)
    with os.fdopen(ours, "rb") as file:
        data = file.read()
    os.close(incoming)
    found = []
    while data:
        size = int.from_bytes(data[:4])
        found.append(data[4 : 4 + size])
        data = data[4 + size :]
    return found


def a_packet(kind: int, *fields: bytes | int, number: int = 7) -> bytes:
    parts = [f.to_bytes(4) if isinstance(f, int) else len(f).to_bytes(4) + f for f in fields]
    body = bytes([kind]) + number.to_bytes(4) + b"".join(parts)
    return len(body).to_bytes(4) + body


def code(answer: bytes) -> tuple[int, int]:
    """Return the number of the request and how it went, of an answer that is a status."""
    assert answer[0] == 101
    number, found = struct.unpack(">II", answer[1:9])
    return number, found


OPEN, CLOSE, READ, OPENDIR, READDIR, SYMLINK, EXTENDED = 3, 4, 5, 11, 12, 20, 200


@pytest.mark.parametrize(
    ("packet", "expected"),
    [
        pytest.param(a_packet(99), 8, id="a kind that nobody knows"),
        pytest.param(a_packet(EXTENDED, b"nonsense@example.com"), 8, id="an extension likewise"),
        pytest.param(a_packet(OPEN), 5, id="no fields at all"),
        pytest.param(a_packet(OPEN, b"file"), 5, id="cut short"),
        pytest.param(a_packet(OPEN, 0xFFFFFFFF), 5, id="a text longer than the packet"),
        pytest.param(a_packet(OPEN, b"a\0b", 1, 0), 5, id="a name with a zero"),
        pytest.param(a_packet(CLOSE, b"1"), 4, id="a handle that was never given"),
        pytest.param(a_packet(READDIR, b"nonsense"), 4, id="a folder that was never opened"),
        pytest.param(a_packet(READ, b"x", 0, 0, 10), 4, id="reading from nothing"),
    ],
)
def test_what_makes_no_sense_is_refused(packet: bytes, expected: int) -> None:
    found = answers(packet, a_packet(99, number=8))

    assert [code(answer) for answer in found] == [(7, expected), (8, 8)]


def test_a_packet_that_is_too_large_ends_the_session() -> None:
    assert answers(a_packet(99), (1 << 20).to_bytes(4) + bytes(1000)) == []


def test_half_a_packet_is_waited_for() -> None:
    assert answers(a_packet(99), a_packet(99)[:7]) == [answers(a_packet(99))[0]]


def test_so_many_files_are_open_at_once(tmp_path: Path) -> None:
    path = bytes(tmp_path)
    found = answers(*[a_packet(OPENDIR, path) for _ in range(257)])

    assert [answer[0] for answer in found] == [102] * 256 + [101]
    assert code(found[-1]) == (7, 4)


def test_a_handle_of_a_folder_is_none_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    opened = a_packet(OPEN, bytes(tmp_path / "file"), 1, 0)
    found = answers(opened, a_packet(READDIR, b"1"), a_packet(OPENDIR, bytes(tmp_path)))
    read = answers(a_packet(OPENDIR, bytes(tmp_path)), a_packet(READ, b"1", 0, 0, 10))

    assert code(found[1]) == (7, 2)
    assert code(read[1]) == (7, 4)


def test_a_link_is_named_as_the_client_does(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"

    [one] = answers(a_packet(SYMLINK, b"elsewhere", bytes(first)), target_first=True)
    [other] = answers(a_packet(SYMLINK, bytes(second), b"elsewhere"), target_first=False)

    assert (code(one), code(other)) == ((7, 0), (7, 0))
    assert (first.readlink(), second.readlink()) == (Path("elsewhere"), Path("elsewhere"))
