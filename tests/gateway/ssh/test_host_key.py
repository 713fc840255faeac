"""The key of the gateway is made once, whoever comes first."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asyncssh

from hublet.gateway.ssh.server import HOST_KEY_FILE, host_key


def test_it_is_an_ed25519_key_that_only_the_hub_reads(tmp_path: Path) -> None:
    key = asyncssh.import_private_key(host_key(tmp_path))

    assert key.get_algorithm() == "ssh-ed25519"
    assert [(path.name, path.stat().st_mode & 0o777) for path in tmp_path.iterdir()] == [
        (HOST_KEY_FILE, 0o600)
    ]


def test_several_processes_have_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        keys = set(threads.map(host_key, [tmp_path] * 8))

    assert keys == {host_key(tmp_path)}
    assert [path.name for path in tmp_path.iterdir()] == [HOST_KEY_FILE]
