"""Hashes of Xet, against vectors that were compared with the public client."""

import pytest

from hublet.storage.errors import InvalidHash
from hublet.storage.xet_hashes import (
    ZERO_HASH,
    Node,
    chunk_hash,
    file_hash,
    from_text,
    keyed_hash,
    range_hash,
    to_text,
    xorb_hash,
)

HELLO = b"hello\n"
TWELVE = [Node(chunk_hash(bytes([number]) * 10), 10) for number in range(12)]


def test_one_chunk_is_its_own_xorb_but_not_its_own_file() -> None:
    chunk = Node(chunk_hash(HELLO), len(HELLO))
    assert to_text(chunk.hash) == "f79027d75d054f28413dc4eefdee1a5f0d63537bec3f51aca012e652ae3df8eb"
    assert chunk.hash.hex().startswith("284f055dd72790f7")
    assert xorb_hash([chunk]) == chunk.hash
    assert (
        to_text(file_hash([chunk]))
        == "fbf3242e7f6725a9dc46e5030d43ca9dd5265dd3690ccd1b1b8dcbdee88cb81b"
    )
    assert (
        to_text(range_hash(chunk.hash))
        == "231caacc7a354026c7d28a8f030df14df279624d0653d874d9f66afb78879bd7"
    )


def test_twelve_chunks_make_a_tree() -> None:
    assert (
        to_text(xorb_hash(TWELVE))
        == "579dacda401613340d025761dc44131dbd99db80c57d6d79fb6108cf9258ece6"
    )
    assert (
        to_text(file_hash(TWELVE))
        == "1e2f39b3a4e37faea56ea0a153c2bf89153b9e183f756cff15395a660c1602d4"
    )


def test_nothing_has_the_hash_of_zeros() -> None:
    assert xorb_hash([]) == file_hash([]) == ZERO_HASH
    assert to_text(ZERO_HASH) == "0" * 64


def test_a_length_changes_the_root() -> None:
    longer = [*TWELVE[:-1], Node(TWELVE[-1].hash, 11)]
    assert xorb_hash(longer) != xorb_hash(TWELVE)


def test_a_keyed_hash_says_nothing_without_its_key() -> None:
    chunk = chunk_hash(HELLO)
    assert keyed_hash(chunk, b"a" * 32) != keyed_hash(chunk, b"b" * 32) != chunk


def test_a_text_becomes_the_hash_again() -> None:
    digest = chunk_hash(HELLO)
    assert from_text(to_text(digest)) == digest


@pytest.mark.parametrize("text", ["", "a" * 63, "a" * 65, "A" * 64, "g" * 64, "a" * 63 + "\n"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidHash, match="64 hexadecimal digits"):
        from_text(text)
