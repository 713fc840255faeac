"""Sign-up: closed unless the administrator opens it, or somebody was invited."""

from collections.abc import AsyncIterator
from dataclasses import replace

import httpx2
import pytest

from hublet.accounts import invitations
from hublet.accounts.errors import UserNotFound
from hublet.accounts.records import OPERATOR, Actor, Role
from hublet.accounts.users import service as accounts
from hublet.accounts.users import store as users
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.core.limits import Limiter
from hublet.login.sign_up import SignUpLimit
from login.login_pages import PASSWORD, a_person, form_token_of, log_in, notices_in
from mail_servers import MailServer, mail_server
from notifications.mailbox import set_mail
from people import an_organization
from workers import drain

FIELDS = {"name": "grace", "fullname": "", "email": "grace@example.com", "password": PASSWORD}


@pytest.fixture
def who_joins() -> str:
    return "closed"


@pytest.fixture
def settings(settings: Settings, who_joins: str) -> Settings:
    return replace(settings, login=replace(settings.login, sign_up=who_joins))


@pytest.fixture
async def mail(database: Database) -> AsyncIterator[MailServer]:
    async with mail_server() as server:
        set_mail(database, smtp_url=server.url())
        yield server


async def exists(database: Database, name: str) -> bool:
    async with database.read() as conn:
        try:
            await accounts.get_user(conn, name)
        except UserNotFound:
            return False
    return True


async def an_invitation(
    database: Database, *, by: str | None = None, organization: str | None = None
) -> str:
    """Return the path of an invitation, of the operator or of somebody by name."""
    async with database.transaction() as conn:
        creator = None if by is None else await users.find_by_name(conn, by)
        found = None
        if organization is not None:
            found = await invitations.organizations.get(conn, organization)
        _, link = await invitations.create(
            conn,
            OPERATOR if creator is None else Actor(id=creator.id, name=creator.name),
            organization=found,
            role=Role.write,
            email="grace@example.com",
        )
    return link.removeprefix("http://hub.test")


@pytest.mark.parametrize("who_joins", ["closed", "invited"])
async def test_without_an_invitation_nobody_joins(
    client: httpx2.AsyncClient, database: Database
) -> None:
    page = await client.get("/join")
    sent = await client.post("/join", data=FIELDS)

    assert (page.status_code, sent.status_code) == (403, 403)
    assert "Ask an administrator for an invitation." in page.text
    assert 'action="/join"' not in page.text + sent.text
    assert 'href="/join"' not in (await client.get("/login")).text
    assert not await exists(database, "grace")


@pytest.mark.parametrize("who_joins", ["open"])
async def test_in_an_open_hub_people_join_and_verify_their_address(
    client: httpx2.AsyncClient, database: Database, mail: MailServer
) -> None:
    assert 'href="/join"' in (await client.get("/login")).text

    weak = await client.post("/join", data=FIELDS | {"password": "2short"})
    joined = await client.post("/join", data=FIELDS)
    await drain(database)

    assert weak.status_code == 422
    assert 'value="grace@example.com"' in weak.text
    assert "2short" not in weak.text
    assert (joined.status_code, joined.headers["location"]) == (303, "/")
    page = await client.get("/settings/account")
    assert "Not verified" in page.text
    assert [str(each["Subject"]) for each in mail.messages] == ["Is this your address?"]


@pytest.mark.parametrize("who_joins", ["open"])
async def test_a_taken_address_is_not_revealed_and_its_owner_is_told(
    client: httpx2.AsyncClient, database: Database, mail: MailServer
) -> None:
    await a_person(database, "ada", email="ada@example.com")

    taken = await client.post("/join", data=FIELDS | {"email": "ADA@example.com"})
    client.cookies.clear()
    free = await client.post("/join", data=FIELDS | {"name": "hopper"})
    await drain(database)

    assert taken.status_code == free.status_code == 303
    assert taken.headers["location"] == free.headers["location"]
    told = [(str(each["To"]), str(each["Subject"])) for each in mail.messages]
    assert sorted(told) == [
        ("ADA@example.com", "You have an account already"),
        ("grace@example.com", "Is this your address?"),
    ]
    async with database.read() as conn:
        user = await accounts.get_user(conn, "grace")
        assert await users.list_emails(conn, user_id=user.id) == []


async def test_an_invitation_opens_a_closed_hub_for_one_person(
    client: httpx2.AsyncClient, database: Database, mail: MailServer
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin})
    path = await an_invitation(database, organization="engines")
    await drain(database)

    page = await client.get(path)
    joined = await client.post(f"{path}/join", data=FIELDS)
    client.cookies.clear()
    again = await client.post(f"{path}/join", data=FIELDS | {"name": "hopper", "email": "h@e.org"})

    assert 'value="grace@example.com"' in page.text
    assert "role <b>write</b>" in page.text
    assert (joined.status_code, again.status_code) == (303, 404)
    assert not await exists(database, "hopper")
    async with database.read() as conn:
        user = await accounts.get_user(conn, "grace")
        [membership] = await users.memberships_of(conn, user_id=user.id)
    assert (membership.organization.name, membership.role) == ("engines", Role.write)
    [sent] = mail.messages
    assert (str(sent["To"]), str(sent["Subject"])) == ("grace@example.com", "Join engines")
    assert path in sent.get_body(("plain",)).get_content()  # type: ignore[union-attr]


@pytest.mark.parametrize(("who_joins", "status"), [("closed", 403), ("invited", 303)])
async def test_an_organization_opens_no_closed_hub_but_an_invited_one(
    client: httpx2.AsyncClient, database: Database, status: int
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin})
    path = await an_invitation(database, by="ada", organization="engines")

    page = await client.get(path)
    joined = await client.post(f"{path}/join", data=FIELDS)

    is_closed = status == 403
    assert ("for people who have an account" in page.text) is is_closed
    assert (f'action="{path}/join"' in page.text) is not is_closed
    assert joined.status_code == status
    assert await exists(database, "grace") is not is_closed


async def test_who_has_an_account_accepts_with_a_button(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin})
    path = await an_invitation(database, by="ada", organization="engines")
    await a_person(database, "grace")
    await log_in(client, "grace")

    page = await client.get(path)
    token = form_token_of(page, path)
    accepted = await client.post(path, data={"form_token": token})
    gone = await client.get(path, headers={"Accept": "text/html"})

    assert "Join as grace" in page.text
    assert (accepted.status_code, accepted.headers["location"]) == (303, "/engines")
    assert gone.status_code == 404
    assert notices_in(gone) == ["This invitation does not work any more. Ask for another one."]


def test_accounts_from_one_address_are_limited(settings: Settings) -> None:
    limit = SignUpLimit(Limiter(), settings, address="192.0.2.1")

    for _ in range(settings.login.sign_ups_per_hour):
        limit.count()
    limit.refund()
    limit.count()
    with pytest.raises(Exception, match="Too many requests"):
        limit.count()
