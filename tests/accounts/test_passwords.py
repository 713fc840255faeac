import asyncio
import math
import re
import threading
import time
from typing import Literal

import pytest
from argon2 import PasswordHasher, extract_parameters
from argon2.low_level import Type

from hublet.accounts import passwords
from hublet.accounts.errors import WeakPassword
from hublet.accounts.passwords import (
    check_strength,
    hash_password,
    needs_rehash,
    new_password,
    verify_password,
)


async def test_a_password_verifies_against_its_own_hash_only() -> None:
    hashed = await hash_password("correct horse")

    assert await verify_password(hashed, "correct horse") is True
    assert await verify_password(hashed, "correct horsf") is False
    assert await verify_password(hashed, "") is False


async def test_the_hash_follows_the_owasp_profile() -> None:
    parameters = extract_parameters(await hash_password("correct horse"))

    assert parameters.type is Type.ID
    assert (parameters.memory_cost, parameters.time_cost, parameters.parallelism) == (19456, 2, 1)
    assert (parameters.salt_len, parameters.hash_len) == (16, 32)


async def test_one_password_has_a_new_hash_each_time() -> None:
    assert await hash_password("correct horse") != await hash_password("correct horse")


async def test_normal_forms_of_one_password_are_the_same_password() -> None:
    hashed = await hash_password("caf\u00e9 au lait")

    assert await verify_password(hashed, "cafe\u0301 au lait") is True


async def test_half_a_surrogate_pair_is_only_a_wrong_password() -> None:
    assert await verify_password(await hash_password("correct horse"), "\ud800") is False


async def test_nobody_costs_the_same_work_and_never_verifies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    everybodys = extract_parameters(await hash_password("correct horse"))
    hashes: list[str | bytes] = []

    class Credulous(PasswordHasher):
        def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:  # noqa: A002 - argon2 names it so.
            hashes.append(hash)
            return True

    monkeypatch.setattr(passwords, "_hasher", Credulous())

    assert await verify_password(None, "correct horse") is False
    assert [extract_parameters(str(one)) for one in hashes] == [everybodys]


async def test_a_hash_of_other_parameters_needs_a_new_one() -> None:
    old = PasswordHasher(time_cost=1, memory_cost=8192, parallelism=1).hash("correct horse")

    assert needs_rehash(old) is True
    assert needs_rehash(await hash_password("correct horse")) is False
    assert await verify_password(old, "correct horse") is True


async def test_two_hashes_are_made_at_once_and_the_loop_stays_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lock = threading.Lock()
    running: list[int] = [0]
    seen: list[int] = []

    class Slow(PasswordHasher):
        def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
            with lock:
                running[0] += 1
                seen.append(running[0])
            time.sleep(0.02)
            with lock:
                running[0] -= 1
            return "hashed"

    monkeypatch.setattr(passwords, "_hasher", Slow())
    waiting = asyncio.gather(*(hash_password("correct horse") for _ in range(6)))
    turns = 0
    while not waiting.done():
        await asyncio.sleep(0.001)
        turns += 1

    assert await waiting == ["hashed"] * 6
    assert max(seen) == 2
    assert turns > 6


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("", "A password has at least 8 characters.", id="empty"),
        pytest.param("a" * 7, "A password has at least 8 characters.", id="7 characters"),
        pytest.param("a" * 257, "A password has at most 256 characters.", id="257 characters"),
        pytest.param("ada-lovelace", "A password is not the name of its user.", id="the name"),
        pytest.param(
            "ADA-Lovelace", "A password is not the name of its user.", id="the name in another case"
        ),
    ],
)
def test_a_weak_password_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(WeakPassword) as refusal:
        check_strength(text, name="Ada-Lovelace")

    assert refusal.value.message == sentence
    assert refusal.value.status == 400


@pytest.mark.parametrize("text", ["a" * 8, "a" * 256, "пароль-8", "ada-lovelace-1815"])
def test_a_password_of_8_to_256_characters_is_accepted(text: str) -> None:
    check_strength(text, name="Ada-Lovelace")


def test_a_new_password_is_readable_and_strong() -> None:
    made = {new_password() for _ in range(300)}
    letters = set("".join(made)) - {"-"}

    assert len(made) == 300
    assert all(re.fullmatch(r"([a-z2-9]{4}-){3}[a-z2-9]{4}", one) for one in made)
    assert letters.isdisjoint("01ilo")
    assert 16 * math.log2(len(letters)) >= 75
    check_strength(new_password(), name="ada")
