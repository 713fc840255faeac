"""What the hub tells about credentials, accounts, followers, gated repositories and members."""

from datetime import timedelta

import httpx2
import pytest

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Actor, OrganizationPlan, Role
from hublet.accounts.users import service as accounts
from hublet.core import clock
from hublet.core.database import Database
from hublet.events import AccessDecided, AccessEnded, CredentialRevoked, RepoSnapshot
from hublet.notifications.mail import mail_queue
from hublet.notifications.preferences.switches import PreferenceKey
from notifications.hub_messages import MailRecorder, ReceivedMessage, publish_events
from people import Headers, a_token, a_user, an_organization, sign_in
from repositories import a_repo, a_resource_group
from service_accounts import create as create_service_account
from workers import drain

ADVICE = (
    "Create another one if you still need it. If you do not know how its value became known, "
    "look for it in files, logs and repositories of yours."
)


@pytest.fixture
def mails(monkeypatch: pytest.MonkeyPatch) -> MailRecorder:
    mails = MailRecorder()
    monkeypatch.setattr(mail_queue, "queue_message_mail", mails.mail_of_message)
    return mails


async def test_the_owner_of_a_reported_credential_is_told_without_its_value(
    client: httpx2.AsyncClient, database: Database, mails: MailRecorder
) -> None:
    value = await a_token(database, "ada")
    await client.post("/api/credentials/revoke", json={"credentials": [value]})
    await drain(database)

    (message,) = await mails.received(database, "ada")
    assert message == ReceivedMessage(
        kind="credential-revoked",
        title="Your token called ada's token was revoked",
        body=f"The token hf_…{value[-4:]} does not work any more. "
        "Somebody presented its value as leaked, and that is proof enough to revoke it.\n\n"
        f"The report came from the address 127.0.0.1.\n\n{ADVICE}",
        mail=PreferenceKey.secret_detected,
    )
    assert value not in f"{message}"


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("administrator", "An administrator of this hub revoked it."),
        ("operator", "Whoever runs this hub revoked it."),
        ("organization", "An administrator of its organization revoked it."),
    ],
)
async def test_who_lost_a_credential_to_somebody_else_is_told_whatever_the_settings(
    database: Database, mails: MailRecorder, reason: str, sentence: str
) -> None:
    await publish_events(database, await revoked(database, reason=reason))

    assert await mails.received(database, "ada") == [
        ReceivedMessage(
            kind="credential-revoked",
            title="Your token called laptop was revoked",
            body=f"The token hf_…abcd does not work any more. {sentence}\n\n{ADVICE}",
        )
    ]


async def revoked(
    database: Database, *, reason: str, user_id: str | None = None, name: str = "laptop"
) -> CredentialRevoked:
    ada = await a_user(database, "ada")
    return CredentialRevoked(
        token_id="a" * 24,
        user_id=user_id or ada.id,
        name=name,
        hint="hf_…abcd",
        reason=reason,
        address="192.0.2.7",
    )


async def test_who_revokes_an_own_credential_knows_it(
    database: Database, mails: MailRecorder
) -> None:
    await publish_events(database, await revoked(database, reason="owner"))

    assert await mails.received(database, "ada") == []


async def test_for_a_program_the_administrators_of_its_organization_are_notified(
    client: httpx2.AsyncClient, database: Database, ada: Headers, mails: MailRecorder
) -> None:
    await an_organization(
        database,
        "engines",
        plan=OrganizationPlan.enterprise,
        members={"ada": Role.admin, "bob": Role.write},
    )
    bot = await create_service_account(client, ada, "bot")
    await publish_events(database, await revoked(database, reason="reported", user_id=bot["id"]))

    assert await mails.titles(database, "ada", "credential") == [
        "The token of bot called laptop was revoked"
    ]
    assert await mails.titles(database, "bob", "credential") == []


async def test_a_name_stays_in_its_line_and_is_cut_when_it_is_long(
    database: Database, mails: MailRecorder
) -> None:
    name = "a\nb\x1b[31m\u2028 <b>" + "x" * 200
    await publish_events(database, await revoked(database, reason="operator", name=name))

    (title,) = await mails.titles(database, "ada")
    shown = title.removeprefix("Your token called ").removesuffix(" was revoked")
    assert shown == "a b [31m <b>" + "x" * 87 + "…"
    assert len(shown) == 100


async def test_the_user_of_an_app_is_told_that_its_access_was_ended(
    database: Database, mails: MailRecorder
) -> None:
    ada = await a_user(database, "ada")
    ended = AccessEnded(user_id=ada.id, app_id="a" * 24, app_name="Loom\n2", reason="reuse")
    await publish_events(database, ended)

    assert await mails.received(database, "ada") == [
        ReceivedMessage(
            kind="access-ended",
            title="The access of Loom 2 to your account was ended",
            body="Somebody came with a login of Loom 2 that had been used before. It may have "
            "been stolen, so everything that the app could do for you has ended.\n\n"
            "Sign in to Loom 2 again if you still use it.",
        )
    ]


async def test_who_is_disabled_is_notified_by_mail_only(
    database: Database, mails: MailRecorder
) -> None:
    ada = await a_user(database, "ada")
    async with database.transaction() as conn:
        await accounts.disable_user(conn, ada)
    await drain(database)

    assert await mails.received(database, "ada") == [
        ReceivedMessage(
            kind="account-disabled",
            title="Your account was switched off",
            body="An administrator switched off your account on this hub: you cannot sign in, "
            "and none of your tokens works.\n\n"
            "What you own is kept. Ask an administrator of the hub if you think this is a "
            "mistake.",
            in_inbox=False,
            mail=PreferenceKey.locked_out,
        )
    ]


async def follow(database: Database, follower: str, account_id: str) -> None:
    user = await a_user(database, follower)
    async with database.transaction() as conn:
        await accounts.follow(conn, follower_id=user.id, account_id=account_id)
    await drain(database)


async def unfollow(database: Database, follower: str, account_id: str) -> None:
    user = await a_user(database, follower)
    async with database.transaction() as conn:
        await accounts.unfollow(conn, follower_id=user.id, account_id=account_id)


async def test_a_follower_is_told_of_once_a_month(database: Database, mails: MailRecorder) -> None:
    ada = await a_user(database, "ada")
    for _ in range(2):
        await follow(database, "bob", ada.id)
        await unfollow(database, "bob", ada.id)
    await follow(database, "eve", ada.id)
    first = await mails.received(database, "ada")
    clock.move(timedelta(days=30, seconds=1))
    await follow(database, "bob", ada.id)

    assert first == [
        ReceivedMessage(
            kind="user-followed",
            title=f"{name} follows you",
            body=f"{name} began to follow you, and sees what you publish.",
            mail=PreferenceKey.user_follows,
        )
        for name in ("bob", "eve")
    ]
    assert (await mails.titles(database, "ada"))[2:] == ["bob follows you"]


async def test_nobody_is_notified_that_an_organization_has_a_follower(
    database: Database, mails: MailRecorder
) -> None:
    engines = await an_organization(database, "engines", members={"ada": Role.admin})
    await follow(database, "bob", engines.id)

    assert await mails.titles(database, "ada", "user") == []


async def ask(client: httpx2.AsyncClient, headers: Headers, full_name: str) -> None:
    response = await client.post(f"/{full_name}/ask-access", headers=headers, json={})
    assert response.status_code < 400, response.text


async def gate(client: httpx2.AsyncClient, headers: Headers, full_name: str, how: str) -> None:
    response = await client.put(
        f"/api/models/{full_name}/settings", headers=headers, json={"gated": how}
    )
    assert response.status_code == 200, response.text


async def test_a_request_to_read_is_told_to_the_owner_and_its_answer_to_who_asked(
    client: httpx2.AsyncClient, database: Database, ada: Headers, mails: MailRecorder
) -> None:
    bob = await sign_in(database, "bob")
    await a_repo(client, ada, "ada/engine")
    await gate(client, ada, "ada/engine", "manual")
    await ask(client, bob, "ada/engine")
    await drain(database)
    await decide(client, ada, status="accepted")
    await drain(database)

    assert await mails.received(database, "ada") == [
        ReceivedMessage(
            kind="access-requested",
            title="bob asks to read the model ada/engine",
            body="The model ada/engine is gated. bob waits for you, or for somebody else who "
            "manages it, to accept or reject the request.\n\n"
            "http://hub.test/ada/engine/settings/access-requests",
            mail=PreferenceKey.gated_user_access_request,
        )
    ]
    assert await mails.received(database, "bob") == [
        ReceivedMessage(
            kind="access-accepted",
            title="You may read the model ada/engine",
            body="Somebody who manages the model ada/engine gave you access to its content.\n\n"
            "http://hub.test/ada/engine/tree/main",
            mail=PreferenceKey.gated_user_access_request,
        )
    ]


async def decide(client: httpx2.AsyncClient, headers: Headers, **decision: str) -> None:
    response = await client.post(
        "/api/models/ada/engine/user-access-request/handle",
        headers=headers,
        json={"user": "bob"} | decision,
    )
    assert response.status_code == 200, response.text


async def test_a_rejection_is_told_and_a_request_put_back_is_not(
    client: httpx2.AsyncClient, database: Database, ada: Headers, mails: MailRecorder
) -> None:
    bob = await sign_in(database, "bob")
    await a_repo(client, ada, "ada/engine")
    await gate(client, ada, "ada/engine", "manual")
    await ask(client, bob, "ada/engine")
    await decide(client, ada, status="rejected")
    await decide(client, ada, status="pending")
    await drain(database)

    assert await mails.received(database, "bob") == [
        ReceivedMessage(
            kind="access-rejected",
            title="Your request to read the model ada/engine was rejected",
            body="Somebody who manages the model ada/engine rejected your request; its content "
            "stays closed to you.\n\nhttp://hub.test/ada/engine",
            mail=PreferenceKey.gated_user_access_request,
        )
    ]


async def test_who_asks_again_and_again_is_told_of_once_a_day(
    client: httpx2.AsyncClient, database: Database, ada: Headers, mails: MailRecorder
) -> None:
    bob = await sign_in(database, "bob")
    await a_repo(client, ada, "ada/engine")
    await gate(client, ada, "ada/engine", "manual")
    for _ in range(2):
        await ask(client, bob, "ada/engine")
        await client.post("/api/models/ada/engine/user-access-request/cancel", headers=bob)
    await drain(database)

    assert len(await mails.titles(database, "ada")) == 1


async def test_with_an_automatic_gate_nobody_has_anything_to_decide(
    client: httpx2.AsyncClient, database: Database, ada: Headers, mails: MailRecorder
) -> None:
    bob = await sign_in(database, "bob")
    await a_repo(client, ada, "ada/engine")
    await gate(client, ada, "ada/engine", "auto")
    await ask(client, bob, "ada/engine")
    await drain(database)

    assert await mails.received(database, "ada") == []


async def test_of_a_request_to_an_organization_its_administrators_and_the_groups_are_notified(
    client: httpx2.AsyncClient, database: Database, ada: Headers, mails: MailRecorder
) -> None:
    everybody = {"ada": Role.admin, "eve": Role.write, "tom": Role.write, "kim": Role.write}
    engines = await an_organization(
        database, "engines", plan=OrganizationPlan.team, members=everybody
    )
    group = await a_resource_group(
        database, engines, members={"eve": Role.admin, "kim": Role.write}
    )
    bob = await sign_in(database, "bob")
    await a_repo(client, ada, "engines/one", resourceGroupId=group.id)
    await gate(client, ada, "engines/one", "manual")
    await ask(client, bob, "engines/one")
    await drain(database)

    counts = [len(await mails.titles(database, name, "access")) for name in everybody]
    assert dict(zip(everybody, counts, strict=True)) == {"ada": 1, "eve": 1, "tom": 0, "kim": 0}


async def test_who_is_added_to_an_organization_is_told_by_whom(
    database: Database, mails: MailRecorder
) -> None:
    ada, bob = await a_user(database, "ada"), await a_user(database, "bob")
    by_ada = Actor(id=ada.id, name=ada.name)
    async with database.transaction() as conn:
        engines = await organizations.create(conn, by_ada, "engines", owner=ada)
        await organizations.set_member(conn, by_ada, engines, bob, Role.read)
        rockets = await organizations.create(conn, OPERATOR, "rockets", owner=bob)
        await organizations.set_member(conn, OPERATOR, engines, bob, Role.write)
    await drain(database)

    assert await mails.received(database, "ada") == []
    assert await mails.received(database, "bob") == [
        ReceivedMessage(
            kind="organization-joined",
            title="You are a member of engines",
            body="ada added you to the organization engines, with the role read.",
            mail=PreferenceKey.org_request,
        ),
        ReceivedMessage(
            kind="organization-joined",
            title=f"You are a member of {rockets.name}",
            body="An administrator added you to the organization rockets, with the role admin.",
            mail=PreferenceKey.org_request,
        ),
    ]


async def test_a_decision_is_told_to_somebody_who_never_asked(
    database: Database, mails: MailRecorder
) -> None:
    bob = await a_user(database, "bob")
    repo = RepoSnapshot(
        id="a" * 24, type="dataset", name="ada/data", owner_id="b" * 24, private=False
    )
    granted = AccessDecided(
        repo=repo, request_id="c" * 24, user_id=bob.id, status="accepted", actor_id="b" * 24
    )
    await publish_events(database, granted)

    assert await mails.titles(database, "bob") == ["You may read the dataset ada/data"]
