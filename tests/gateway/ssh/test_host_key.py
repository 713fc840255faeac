"""The key of the gateway is made once, whoever comes first, and is the same on every machine."""

import asyncio
import base64
from dataclasses import replace
from pathlib import Path

import asyncssh
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from hublet.core import metadata
from hublet.core.database import Database
from hublet.gateway.ssh.server import HOST_KEY_FILE, host_key


def move_to(database: Database, folder: Path) -> None:
    """Let the hub go on with another data folder, as another machine has it."""
    settings = database.hub.settings
    settings = replace(settings, database=replace(settings.database, data_dir=folder))
    database.hub = replace(database.hub, settings=settings)


async def test_it_is_an_ed25519_key_that_lies_sealed_in_the_database(
    database: Database, tmp_path: Path
) -> None:
    move_to(database, tmp_path)
    key = asyncssh.import_private_key(await host_key(database))

    assert key.get_algorithm() == "ssh-ed25519"
    async with database.read() as conn:
        stored = await metadata.find(conn, "ssh_host_key")
    assert stored is not None
    assert b"OPENSSH" not in base64.b64decode(stored)


async def test_machines_that_start_together_have_the_same(
    database: Database, tmp_path: Path
) -> None:
    keys = await asyncio.gather(*(host_key(database) for _ in range(4)))
    move_to(database, tmp_path / "other")

    assert {*keys} == {await host_key(database)}


async def test_the_key_of_a_folder_from_before_stays(database: Database, tmp_path: Path) -> None:
    text = Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()
    )
    (tmp_path / HOST_KEY_FILE).write_bytes(text)
    move_to(database, tmp_path)

    assert await host_key(database) == text
