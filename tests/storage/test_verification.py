"""Verification in worker processes, from files."""

import hashlib
from pathlib import Path

import pytest

from hublet.storage.errors import InvalidXorb
from hublet.storage.verification import sha256_of, verify_upload
from hublet.storage.workers import processes
from storage.xet_content import make_xorb

CONTENTS = [b"one" * 3000, b"two" * 4000]


async def test_a_worker_process_returns_the_layout_or_the_error(tmp_path: Path) -> None:
    digest, data = make_xorb(CONTENTS, 1)
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_bytes(data)
    bad.write_bytes(data[:-1])
    layout, form = await processes.run(verify_upload, good, digest)
    assert (layout.hash, layout.stored_size) == (digest, len(data))
    # A footer does not count, because it is not kept.
    good.write_bytes(data + layout.footer())
    assert await processes.run(verify_upload, good, digest) == (layout, form)
    other = make_xorb(CONTENTS, 0)[1]
    good.write_bytes(other)
    assert await processes.run(verify_upload, good, digest) != (layout, form)
    with pytest.raises(InvalidXorb, match="ends within the chunk"):
        await processes.run(verify_upload, bad, digest)


def test_an_empty_file_is_no_xorb(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(InvalidXorb, match="at least one chunk"):
        verify_upload(empty, make_xorb(CONTENTS)[0])


def test_the_sha256_is_that_of_the_content() -> None:
    _, data = make_xorb(CONTENTS, 2)
    assert sha256_of([data]) == hashlib.sha256(b"".join(CONTENTS)).hexdigest()
