"""How a browser is let in to the port of a job: a code that works once, and a cookie for it."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from fastapi import FastAPI

from gateway.ports.job_ports import Before, before
from gateway.ports.test_authorization_api import hello
from hublet.core import clock
from hublet.core.database import Database
from hublet.gateway.ports.headers import ProxyRequest
from hublet.gateway.ports.sessions import is_navigation, is_same_origin
from hublet.login import sessions
from oauth.browser_flows import signed_in
from people import Headers

PAGE = {"Accept": "text/html,*/*"}


@pytest.fixture
async def port(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> AsyncIterator[Before]:
    async with before(app, client, database, ada, hello) as port:
        yield port


async def visit(port: Before, path: str, **headers: str) -> httpx2.Response:
    """Open an address of the port as a browser does that keeps nothing by itself."""
    async with httpx2.AsyncClient() as browser:
        address = f"http://127.0.0.1:{port.hub_port}{path}"
        return await browser.get(address, headers={"Host": port.host(), **PAGE, **headers})


def kept(answer: httpx2.Response) -> str:
    """Return the cookie that an answer sets, as the browser sends it back."""
    return answer.headers["set-cookie"].partition(";")[0]


async def led_back(client: httpx2.AsyncClient, first: httpx2.Response) -> str:
    """Go to the hub as the port says; return the path to which it leads back."""
    page = await client.get(first.headers["location"])
    assert page.status_code == 200, page.text
    seconds, _, address = page.headers["refresh"].partition("; url=")
    assert seconds == "0"
    back = urlsplit(address)
    return f"{back.path}?{back.query}"


async def test_a_browser_is_led_to_the_hub_and_back(
    port: Before, client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database, "ada")

    first = await visit(port, "/page?a=b&c=d")
    assert first.status_code == 303
    leads = urlsplit(first.headers["location"])
    assert f"{leads.scheme}://{leads.netloc}{leads.path}" == (
        f"http://hub.test/login/jobs/{port.job_id}/8080"
    )
    assert parse_qs(leads.query)["next"] == ["/page?a=b&c=d"]

    entering = await led_back(client, first)
    assert entering.startswith("/.hublet/enter?code=")
    entered = await visit(port, entering, Cookie=kept(first))

    assert (entered.status_code, entered.headers["location"]) == (303, "/page?a=b&c=d")
    assert re.fullmatch(
        r"hublet_job=[A-Za-z0-9]{43}; Max-Age=14400; Path=/; HttpOnly; SameSite=Lax",
        entered.headers["set-cookie"],
    )
    page = await visit(port, "/page?a=b&c=d", Cookie=f"own=1; {kept(entered)}")
    assert page.text == "hello"
    assert [b"cookie: own=1\r\n" in head for head in port.job.heads] == [True]
    assert b"code=" not in b"".join(port.job.heads)


async def let_in(port: Before, client: httpx2.AsyncClient) -> str:
    """Return the cookie of a browser that was led to the hub and back."""
    first = await visit(port, "/")
    entering = await led_back(client, first)
    return kept(await visit(port, entering, Cookie=kept(first)))


async def test_a_code_works_once(
    port: Before, client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database, "ada")
    first = await visit(port, "/")
    entering = await led_back(client, first)

    assert (await visit(port, entering, Cookie=kept(first))).status_code == 303
    again = await visit(port, entering, Cookie=kept(first))

    assert again.status_code == 404
    assert again.json() == {
        "error": "This link was used already, or is too old: open the port once more."
    }


async def test_a_code_is_for_one_browser_one_port_and_one_minute(
    port: Before, client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database, "ada")
    first, other = await visit(port, "/"), await visit(port, "/")

    entering = await led_back(client, first)
    assert (await visit(port, entering)).status_code == 404
    assert (await visit(port, entering, Cookie=kept(other))).status_code == 404
    elsewhere = await visit(port, entering, Cookie=kept(first), Host=port.host(9000))
    assert elsewhere.status_code == 404
    clock.move(timedelta(seconds=61))
    assert (await visit(port, entering, Cookie=kept(first))).status_code == 404


async def test_two_pages_of_one_browser_do_not_get_in_each_others_way(
    port: Before, client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database, "ada")
    first = await visit(port, "/one")
    second = await visit(port, "/two", Cookie=kept(first))

    for each, path in ((first, "/one"), (second, "/two")):
        entering = await led_back(client, each)
        entered = await visit(port, entering, Cookie=kept(second))
        assert (entered.status_code, entered.headers["location"]) == (303, path)


async def test_the_way_back_never_leads_elsewhere(
    port: Before, client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database, "ada")
    first = await visit(port, "//evil.example/x")

    entering = await led_back(client, first)
    entered = await visit(port, entering, Cookie=kept(first))

    assert entered.headers["location"] == "/"


async def test_somebody_who_may_not_see_the_job_gets_no_code(
    port: Before, client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database, "bob")
    first = await visit(port, "/")

    page = await client.get(first.headers["location"])

    assert page.status_code == 404
    assert "refresh" not in page.headers
    assert f"There is no job {port.job_id}, or you cannot see it." in page.text


async def test_who_is_not_signed_in_signs_in_first(
    port: Before, client: httpx2.AsyncClient
) -> None:
    first = await visit(port, "/")

    page = await client.get(first.headers["location"])

    assert page.status_code == 303
    assert page.headers["location"].startswith(f"/login?next=/login/jobs/{port.job_id}/8080")


@pytest.mark.parametrize("headers", [{"Accept": "*/*"}, {"Sec-Fetch-Mode": "cors"}])
async def test_a_script_is_not_led_anywhere(port: Before, headers: Headers) -> None:
    assert (await visit(port, "/", **headers)).status_code == 401


async def test_a_cookie_is_of_one_port(
    port: Before, client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database, "ada")
    cookie = await let_in(port, client)
    path = f"/api/jobs/ada/{port.job_id}/expose"
    await client.put(path, headers=port.token, json={"ports": [8080, 9000]})

    assert (await visit(port, "/", Cookie=cookie)).text == "hello"
    other = await visit(port, "/", Cookie=cookie, Host=port.host(9000))
    assert other.status_code == 303


async def test_a_cookie_ends_with_the_session_and_after_four_hours(
    port: Before, client: httpx2.AsyncClient, database: Database
) -> None:
    session = await signed_in(client, database, "ada")
    cookie, second = await let_in(port, client), await let_in(port, client)
    clock.move(timedelta(hours=4, minutes=-1))
    assert (await visit(port, "/", Cookie=second)).text == "hello"
    clock.move(timedelta(minutes=2))
    async with asyncio.timeout(10):
        while (await visit(port, "/", Cookie=second)).status_code != 303:
            await asyncio.sleep(0.1)

    clock.reset()
    assert (await visit(port, "/", Cookie=cookie)).text == "hello"
    async with database.transaction() as conn:
        await sessions.drop(conn, session)
    async with asyncio.timeout(10):
        while (await visit(port, "/", Cookie=cookie)).status_code != 303:
            await asyncio.sleep(0.1)


async def test_the_page_of_another_host_cannot_use_the_cookie(
    port: Before, client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database, "ada")
    cookie = await let_in(port, client)

    foreign = {"Origin": f"http://{port.host(9000)}", "Accept": "*/*"}
    assert (await visit(port, "/", Cookie=cookie, **foreign)).status_code == 401
    own = {"Origin": f"http://{port.host()}", "Accept": "*/*"}
    assert (await visit(port, "/", Cookie=cookie, **own)).text == "hello"


def asked(method: str = "GET", **headers: str) -> ProxyRequest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ProxyRequest(
        method=method.encode(),
        target=b"/",
        headers=[(name.encode(), value.encode()) for name, value in named.items()],
    )


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(asked(), True, id="no browser"),
        pytest.param(asked(host="a", origin="http://a"), True, id="its own page"),
        pytest.param(asked(host="a", origin="http://b"), False, id="another page"),
        pytest.param(asked(host="a", origin="null"), False, id="a page without a home"),
        pytest.param(asked(sec_fetch_site="same-origin"), True, id="its own picture"),
        pytest.param(asked(sec_fetch_site="none"), True, id="typed in"),
        pytest.param(
            asked(sec_fetch_site="same-site"), False, id="a picture on another job's page"
        ),
        pytest.param(asked(sec_fetch_site="cross-site"), False, id="a picture anywhere else"),
        pytest.param(
            asked(sec_fetch_site="cross-site", sec_fetch_mode="navigate"), True, id="a link"
        ),
        pytest.param(
            asked("POST", sec_fetch_site="same-site", sec_fetch_mode="navigate"),
            False,
            id="the form of another job's page",
        ),
    ],
)
def test_a_cookie_counts_for(request_: ProxyRequest, expected: bool) -> None:  # noqa: FBT001 - a table
    assert is_same_origin(request_) is expected


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(asked(accept="text/html"), True, id="a page"),
        pytest.param(asked(accept="*/*"), False, id="curl"),
        pytest.param(asked("POST", accept="text/html"), False, id="a form"),
        pytest.param(asked(accept="text/html", sec_fetch_mode="cors"), False, id="a script"),
        pytest.param(
            asked(accept="text/html", connection="Upgrade", upgrade="websocket"),
            False,
            id="a websocket",
        ),
    ],
)
def test_a_person_opens(request_: ProxyRequest, expected: bool) -> None:  # noqa: FBT001 - a table
    assert is_navigation(request_) is expected
