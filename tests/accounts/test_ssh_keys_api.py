"""The caller's own SSH keys."""

import base64
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.events import SshKeyAdded, SshKeyRemoved
from outbox_events import published_events
from people import Headers, a_user, sign_in

PATH = "/api/settings/ssh-keys"


def a_key() -> str:
    public = Ed25519PrivateKey.generate().public_key()
    return public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


async def add(
    client: httpx2.AsyncClient, headers: Headers, key: str, title: str = "laptop"
) -> dict[str, Any]:
    response = await client.post(PATH, headers=headers, json={"title": title, "key": key})
    assert response.status_code == 200
    added: dict[str, Any] = response.json()
    return added


async def test_a_key_is_kept_without_its_comment(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    key = a_key()

    added = await add(client, ada, f"{key} ada@laptop\n", title=" laptop ")

    assert added == {
        "id": added["id"],
        "title": "laptop",
        "key": key,
        "fingerprint": added["fingerprint"],
        "createdAt": added["createdAt"],
    }
    assert added["fingerprint"].startswith("SHA256:")
    assert (await client.get(PATH, headers=ada)).json() == [added]
    user = await a_user(database, "ada")
    assert await published_events(database, SshKeyAdded) == [
        {
            "user_id": user.id,
            "key_id": added["id"],
            "title": "laptop",
            "fingerprint": added["fingerprint"],
        }
    ]


async def test_a_key_belongs_to_one_account(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    key = a_key()
    bob = await sign_in(database, "bob")
    added = await add(client, bob, key)

    for headers in (ada, bob):
        response = await client.post(PATH, headers=headers, json={"title": "mine", "key": key})
        assert response.status_code == 409
        assert response.json() == {
            "error": f"The SSH key {added['fingerprint']} belongs to an account already."
        }
    assert (await client.get(PATH, headers=ada)).json() == []


async def test_a_removed_key_is_free_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    key = a_key()
    added = await add(client, ada, key)

    removed = await client.delete(f"{PATH}/{added['id']}", headers=ada)
    again = await client.delete(f"{PATH}/{added['id']}", headers=ada)

    assert (removed.status_code, removed.json()) == (200, {})
    assert again.status_code == 404
    assert (await client.get(PATH, headers=ada)).json() == []
    user = await a_user(database, "ada")
    assert await published_events(database, SshKeyRemoved) == [
        {
            "user_id": user.id,
            "key_id": added["id"],
            "title": "laptop",
            "fingerprint": added["fingerprint"],
        }
    ]
    await add(client, await sign_in(database, "bob"), key)


async def test_another_users_key_is_not_found(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    added = await add(client, bob, a_key())

    response = await client.delete(f"{PATH}/{added['id']}", headers=ada)

    assert response.status_code == 404
    assert response.json() == {"error": f"There is no SSH key {added['id']} of yours."}
    assert (await client.get(PATH, headers=bob)).json() == [added]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"key": "ssh-ed25519 AAAA"}, "title is required."),
        ({"title": " ", "key": "x"}, "title must have at least 1 character(s)."),
        ({"title": "x", "key": ""}, "key must have at least 1 character(s)."),
        (
            {"title": "x", "key": f"ssh-ed25519 {base64.b64encode(b'junk').decode()}"},
            "The data of the SSH key is not of the type in front of it.",
        ),
    ],
)
async def test_a_key_that_breaks_a_rule_is_refused(
    client: httpx2.AsyncClient, ada: Headers, body: dict[str, str], sentence: str
) -> None:
    response = await client.post(PATH, headers=ada, json=body)

    assert (response.status_code, response.json()) == (400, {"error": sentence})


async def test_an_account_has_a_hundred_keys_at_most(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    user = await a_user(database, "ada")
    async with database.transaction() as conn:
        for number in range(99):
            await conn.execute(
                "INSERT INTO ssh_keys (id, user_id, title, type, data, fingerprint, created_at)"
                " VALUES ($1, $2, 'x', 'x', 'x', $3, 0)",
                new_object_id(), user.id, f"SHA256:{number}",
            )  # fmt: skip
    await add(client, ada, a_key())

    response = await client.post(PATH, headers=ada, json={"title": "x", "key": a_key()})

    assert response.status_code == 400
    assert response.json() == {"error": "An account has at most 100 SSH keys."}
