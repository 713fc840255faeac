import base64
import hashlib
import hmac
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import example, given
from hypothesis import strategies as st

from hublet.core.sealing import Key, KeyRing, KeyRingError, SealBroken
from patience import SOON_SECONDS

OLD = bytes(range(32))
NEW = bytes(range(100, 132))
SPOKEN = base64.urlsafe_b64encode(OLD).decode()
RING = KeyRing(keys=(Key(id="new", master=NEW), Key(id="old", master=OLD)))
BEFORE_ROTATION = KeyRing(keys=(Key(id="old", master=OLD),))


def a_line(key_id: str, master: bytes) -> str:
    return f"{key_id}:{base64.urlsafe_b64encode(master).decode()}"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{a_line('new', NEW)},{a_line('old', OLD)}", id="commas"),
        pytest.param(f"{a_line('new', NEW)}\n{a_line('old', OLD)}\n", id="lines"),
        pytest.param(f"{a_line('new', NEW)}\r\n{a_line('old', OLD)}\r\n", id="Windows lines"),
        pytest.param(f" {a_line('new', NEW)} ,, {a_line('old', OLD)} , ", id="spaces and gaps"),
        pytest.param(
            f"# ours, all of them\n{a_line('new', NEW)} # since May\n\n{a_line('old', OLD)}",
            id="comments",
        ),
        pytest.param(
            f"{a_line('new', NEW)}\n{a_line('old', OLD)}".replace("=", ""), id="no padding"
        ),
    ],
)
def test_a_key_ring_is_read_in_order(text: str) -> None:
    assert KeyRing.parse(text) == RING


NOT_AN_ENTRY = "Entry {} of the key ring is not `id:` and 32 bytes in base64url."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("", "A key ring needs at least one key.", id="empty"),
        pytest.param("# nothing\n,\n", "A key ring needs at least one key.", id="comments only"),
        pytest.param(SPOKEN, NOT_AN_ENTRY.format(1), id="a key without an id"),
        pytest.param(f":{SPOKEN}", NOT_AN_ENTRY.format(1), id="an empty id"),
        pytest.param(f"{SPOKEN}:old", NOT_AN_ENTRY.format(1), id="id and key swapped"),
        pytest.param(
            f"{a_line('a', NEW)},b:{SPOKEN[:-4]}", NOT_AN_ENTRY.format(2), id="a short key"
        ),
        pytest.param(f"a:{SPOKEN}AAAA", NOT_AN_ENTRY.format(1), id="a long key"),
        pytest.param(f"a:{'+' + SPOKEN[1:]}", NOT_AN_ENTRY.format(1), id="plain base64"),
        pytest.param(f"{'a' * 33}:{SPOKEN}", NOT_AN_ENTRY.format(1), id="a long id"),
        pytest.param(f"é:{SPOKEN}", NOT_AN_ENTRY.format(1), id="an id outside ASCII"),
        pytest.param(f"a: {SPOKEN}", NOT_AN_ENTRY.format(1), id="a space before the key"),
        pytest.param(
            f"{a_line('a', NEW)},{a_line('a', OLD)}",
            "Two keys in the key ring have the same id.",
            id="one id twice",
        ),
    ],
)
def test_a_broken_key_ring_is_refused_without_showing_it(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match="key") as refusal:
        KeyRing.parse(text)

    assert str(refusal.value) == sentence


def test_new_rings_differ() -> None:
    one, other = KeyRing.new(), KeyRing.new()

    assert one.keys[0].id != other.keys[0].id
    assert one.fingerprint() != other.fingerprint()
    assert [len(key.master) for key in one.keys] == [32]


def test_the_digest_is_an_hmac_under_a_key_derived_for_its_kind() -> None:
    """Whoever changes the derivation makes every stored digest useless: so it is fixed here."""
    info = b"hublet 1 digest token"
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(NEW)

    expected = hmac.digest(derived, "hf_grüße".encode(), hashlib.sha256)

    assert RING.digest("token", "hf_grüße") == expected


def test_digests_of_other_kinds_and_values_differ() -> None:
    made = [RING.digest(kind, value) for kind in ("token", "code") for value in ("a", "b")]

    assert len(set(made)) == 4


def test_digests_are_given_for_each_key_current_first() -> None:
    assert RING.digests("token", "a") == (
        RING.digest("token", "a"),
        BEFORE_ROTATION.digest("token", "a"),
    )


@given(st.text())
@example("\ud800")
def test_every_text_has_a_digest(value: str) -> None:
    assert len(RING.digest("token", value)) == 32


@given(st.binary(), st.text())
def test_what_is_sealed_can_be_opened(plain: bytes, context: str) -> None:
    assert RING.open(RING.seal(plain, context=context), context=context) == plain


def test_the_same_value_is_sealed_differently_each_time() -> None:
    assert RING.seal(b"s3cret", context="a") != RING.seal(b"s3cret", context="a")


def test_the_envelope_names_its_version_and_key() -> None:
    sealed = RING.seal(b"s3cret", context="a")

    assert sealed[:5] == b"\x01\x03new"
    assert len(sealed) == 5 + 12 + len(b"s3cret") + 16
    assert b"s3cret" not in sealed


def test_a_seal_of_an_earlier_release_can_be_opened() -> None:
    sealed = bytes.fromhex(
        "01036e6577fb2d7c65df9e060c890122de8779ef4cff1cb04955ed0d8c1a064e2cc46718fee563"
    )

    assert RING.open(sealed, context="webhooks.secret 1") == b"s3cret"


def test_a_seal_of_before_the_rotation_can_be_opened() -> None:
    sealed = BEFORE_ROTATION.seal(b"s3cret", context="a")

    assert RING.open(sealed, context="a") == b"s3cret"


def test_a_key_outside_the_ring_is_named_as_the_reason() -> None:
    sealed = RING.seal(b"s3cret", context="a")

    with pytest.raises(SealBroken, match=r"^The value is not sealed with a key of this ring\.$"):
        BEFORE_ROTATION.open(sealed, context="a")


def test_another_key_under_the_same_id_does_not_open() -> None:
    impostor = KeyRing(keys=(Key(id="old", master=NEW),))

    with pytest.raises(SealBroken, match=r"^The sealed value was changed or moved\.$"):
        impostor.open(BEFORE_ROTATION.seal(b"s3cret", context="a"), context="a")


@pytest.mark.parametrize("context", ["", "b", "aa", "A", "a\0"])
def test_a_seal_moved_to_another_context_does_not_open(context: str) -> None:
    with pytest.raises(SealBroken, match=r"^The sealed value was changed or moved\.$"):
        RING.open(RING.seal(b"s3cret", context="a"), context=context)


def test_every_changed_bit_breaks_the_seal() -> None:
    sealed = RING.seal(b"s3cret", context="a")

    for position in range(len(sealed) * 8):
        changed = bytearray(sealed)
        changed[position // 8] ^= 1 << position % 8
        with pytest.raises(SealBroken):
            RING.open(bytes(changed), context="a")


def test_every_cut_or_longer_envelope_is_broken() -> None:
    sealed = RING.seal(b"s3cret", context="a")

    for other in (*(sealed[:length] for length in range(len(sealed))), sealed + b"\0"):
        with pytest.raises(SealBroken):
            RING.open(other, context="a")


@given(st.binary(max_size=80))
def test_foreign_bytes_are_broken_seals(data: bytes) -> None:
    with pytest.raises(SealBroken):
        RING.open(data, context="a")


def test_a_key_id_is_bound_to_its_seal() -> None:
    """Two ids with one key are two keys, so an envelope cannot be relabelled."""
    twins = KeyRing(keys=(Key(id="one", master=OLD), Key(id="two", master=OLD)))
    relabelled = twins.seal(b"s3cret", context="a").replace(b"one", b"two", 1)

    with pytest.raises(SealBroken):
        twins.open(relabelled, context="a")


def test_fingerprints_name_the_keys_current_first() -> None:
    assert RING.fingerprints() == ("c3391d83fb6f1919", "e314e65fd110ff1d")
    assert RING.fingerprint() == "c3391d83fb6f1919"
    assert BEFORE_ROTATION.fingerprint() == "e314e65fd110ff1d"


def test_a_fingerprint_does_not_depend_on_the_id() -> None:
    assert KeyRing.parse(a_line("renamed", NEW)).fingerprint() == RING.fingerprint()


def test_a_printed_ring_shows_ids_only() -> None:
    assert repr(RING) == "KeyRing(keys=(Key(id='new'), Key(id='old')))"


def test_a_missing_file_is_created_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys"

    ring = KeyRing.load_or_create(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]
    assert KeyRing.parse(path.read_text()) == ring
    assert KeyRing.load_or_create(path) == ring


def test_processes_that_start_at_once_end_with_the_same_ring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = Barrier(4)
    draw = KeyRing.new

    def draw_together() -> KeyRing:
        # All have found no file by now, and none has written one.
        together.wait(timeout=SOON_SECONDS)
        return draw()

    monkeypatch.setattr(KeyRing, "new", draw_together)
    with ThreadPoolExecutor(4) as pool:
        rings = list(pool.map(KeyRing.load_or_create, [tmp_path / "keys"] * 4))

    assert rings == [KeyRing.load_or_create(tmp_path / "keys")] * 4
    assert list(tmp_path.iterdir()) == [tmp_path / "keys"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o777])
def test_a_file_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "keys"
    KeyRing.load_or_create(path)
    path.chmod(mode)

    with pytest.raises(KeyRingError) as refusal:
        KeyRing.load_or_create(path)

    assert str(refusal.value) == (
        f"The key ring {path} is open to others than its owner. Run: chmod 600 {path}"
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"", "A key ring needs at least one key.", id="an empty file"),
        pytest.param(b"\xff" + SPOKEN.encode(), NOT_AN_ENTRY.format(1), id="not text"),
        pytest.param(b"a:" + SPOKEN.encode()[:-9], NOT_AN_ENTRY.format(1), id="a cut file"),
    ],
)
def test_a_broken_file_is_refused_and_kept(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "keys"
    path.touch(mode=0o600)
    path.write_bytes(content)

    with pytest.raises(KeyRingError) as refusal:
        KeyRing.load_or_create(path)

    assert str(refusal.value) == f"The key ring {path} is broken. {reason}"
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("no/keys", "No such file or directory", id="the folder is missing"),
        pytest.param("", "Is a directory", id="a folder stands there"),
    ],
)
def test_a_file_out_of_reach_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    path = tmp_path / name

    with pytest.raises(KeyRingError) as refusal:
        KeyRing.load_or_create(path)

    assert str(refusal.value) == f"The key ring {path} is out of reach: {reason}."
