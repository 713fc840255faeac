"""A person in front of a browser, as far as HTTP goes."""

import re
from html import unescape

import httpx2

from hublet.accounts.records import User
from hublet.accounts.users import service as accounts
from hublet.accounts.users import store
from hublet.core.database import Database

PASSWORD = "correct horse battery"


async def a_person(database: Database, name: str = "ada", *, email: str | None = None) -> User:
    """Return the user of this name, created with the password of all people of the tests."""
    async with database.transaction() as conn:
        found = await store.find_by_name(conn, name)
        return found or await accounts.create_user(conn, name, email=email, password=PASSWORD)


async def log_in(
    client: httpx2.AsyncClient, name: str = "ada", password: str = PASSWORD, **fields: str
) -> httpx2.Response:
    return await client.post("/login", data={"name": name, "password": password} | fields)


def form_token_of(page: httpx2.Response, action: str) -> str:
    """Return the token of the page's form that is sent to this path."""
    [form] = re.findall(rf'<form[^>]*action="{re.escape(action)}".*?</form>', page.text, re.DOTALL)
    [token] = re.findall(r'name="form_token" value="([^"]+)"', form)
    return str(token)


def notices_in(page: httpx2.Response) -> list[str]:
    """Return the notices of a page, what went wrong or well just now."""
    found = re.findall(r'<p class="notice[^>]*role=[^>]*>([^<]+)</p>', page.text)
    return [unescape(text) for text in found]
