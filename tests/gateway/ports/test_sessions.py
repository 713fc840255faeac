"""How a browser is let in to the port of a job: a code that works once, and a cookie for it."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from fastapi import FastAPI

from gateway.ports.job_ports import PortClient, a_port_client
from gateway.ports.test_authorization_api import hello
from hublet.core import clock
from hublet.core.database import Database
from hublet.gateway.ports.headers import ProxyRequest
from hublet.gateway.ports.sessions import is_navigation, is_same_origin
from hublet.login import sessions
from oauth.browser_flows import signed_in
from patience import SOON_SECONDS
from people import Headers

PAGE = {"Accept": "text/html,*/*"}


@pytest.fixture
async def port(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> AsyncIterator[PortClient]:
    async with a_port_client(app, client, database, ada, hello) as port:
        yield port


async def visit(port: PortClient, path: str, **headers: str) -> httpx2.Response:
    """Open an address of the port as a browser does that keeps nothing by itself."""
    async with httpx2.AsyncClient() as browser:
        address = f"http://127.0.0.1:{port.hub_port}{path}"
        return await browser.get(address, headers={"Host": port.host(), **PAGE, **headers})


def cookie_of(answer: httpx2.Response) -> str:
    """Return the cookie that an answer sets, as the browser sends it back."""
    return answer.headers["set-cookie"].partition(";")[0]


async def follow_login(client: httpx2.AsyncClient, first: httpx2.Response) -> str:
    """Go to the hub as the port says; return the path to which it leads back."""
    page = await client.get(first.headers["location"])
    assert page.status_code == 200, page.text
    seconds, _, address = page.headers["refresh"].partition("; url=")
    assert seconds == "0"
    back = urlsplit(address)
    return f"{back.path}?{back.query}"


async def test_a_browser_is_led_to_the_hub_and_back(
    port: PortClient, client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database, "ada")

    first = await visit(port, "/page?a=b&c=d")
    assert first.status_code == 303
    leads = urlsplit(first.headers["location"])
    assert f"{leads.scheme}://{leads.netloc}{leads.path}" == (
        f"http://hub.test/login/jobs/{port.job_id}/8080"
    )
    assert parse_qs(leads.query)["next"] == ["/page?a=b&c=d"]

    entering = await follow_login(client, first)
    assert entering.startswith("/.hublet/enter?code=")
    entered = await visit(port, entering, Cookie=cookie_of(first))

    assert (entered.status_code, entered.headers["location"]) == (303, "/page?a=b&c=d")
    assert re.fullmatch(
        r"hublet_job=[A-Za-z0-9]{43}; Max-Age=14400; Path=/; HttpOnly; SameSite=Lax",
        entered.headers["set-cookie"],
    )
    page = await visit(port, "/page?a=b&c=d", Cookie=f"own=1; {cookie_of(entered)}")
    assert page.text == "hello"
    assert [b"cookie: own=1\r\n" in head for head in port.job.heads] == [True]
    assert b"code=" not in b"".join(port.job.heads)


async def log_in(port: PortClient, client: httpx2.AsyncClient) -> str:
    """Return the cookie of a browser that was led to the hub and back."""
    first = await visit(port, "/")
    entering = await follow_login(client, first)
    return cookie_of(await visit(port, entering, Cookie=cookie_of(first)))


async def test_a_code_works_once(
    port: PortClient, client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database, "ada")
    first = await visit(port, "/")
    entering = await follow_login(client, first)

    assert (await visit(port, entering, Cookie=cookie_of(first))).status_code == 303
    again = await visit(port, entering, Cookie=cookie_of(first))

    assert again.status_code == 404
    assert again.json() == {
        "error": "This link was used already, or is too old: open the port once more."
    }


async def test_a_code_is_for_one_browser_one_port_and_one_minute(
    port: PortClient, client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database, "ada")
    first, other = await visit(port, "/"), await visit(port, "/")

    entering = await follow_login(client, first)
    assert (await visit(port, entering)).status_code == 404
    assert (await visit(port, entering, Cookie=cookie_of(other))).status_code == 404
    elsewhere = await visit(port, entering, Cookie=cookie_of(first), Host=port.host(9000))
    assert elsewhere.status_code == 404
    clock.move(timedelta(seconds=61))
    assert (await visit(port, entering, Cookie=cookie_of(first))).status_code == 404


async def test_two_pages_of_one_browser_do_not_get_in_each_others_way(
    port: PortClient, client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database, "ada")
    first = await visit(port, "/one")
    second = await visit(port, "/two", Cookie=cookie_of(first))

    for each, path in ((first, "/one"), (second, "/two")):
        entering = await follow_login(client, each)
        entered = await visit(port, entering, Cookie=cookie_of(second))
        assert (entered.status_code, entered.headers["location"]) == (303, path)


async def test_the_way_back_never_leads_elsewhere(
    port: PortClient, client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database, "ada")
    first = await visit(port, "//evil.example/x")

    entering = await follow_login(client, first)
    entered = await visit(port, entering, Cookie=cookie_of(first))

    assert entered.headers["location"] == "/"


async def test_somebody_who_may_not_see_the_job_gets_no_code(
    port: PortClient, client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database, "bob")
    first = await visit(port, "/")

    page = await client.get(first.headers["location"])

    assert page.status_code == 404
    assert "refresh" not in page.headers
    assert f"There is no job {port.job_id}, or you cannot see it." in page.text


async def test_who_is_not_signed_in_signs_in_first(
    port: PortClient, client: httpx2.AsyncClient
) -> None:
    first = await visit(port, "/")

    page = await client.get(first.headers["location"])

    assert page.status_code == 303
    assert page.headers["location"].startswith(f"/login?next=/login/jobs/{port.job_id}/8080")


@pytest.mark.parametrize("headers", [{"Accept": "*/*"}, {"Sec-Fetch-Mode": "cors"}])
async def test_a_script_is_not_led_anywhere(port: PortClient, headers: Headers) -> None:
    assert (await visit(port, "/", **headers)).status_code == 401


async def test_a_cookie_is_of_one_port(
    port: PortClient, client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database, "ada")
    cookie = await log_in(port, client)
    path = f"/api/jobs/ada/{port.job_id}/expose"
    await client.put(path, headers=port.token, json={"ports": [8080, 9000]})

    assert (await visit(port, "/", Cookie=cookie)).text == "hello"
    other = await visit(port, "/", Cookie=cookie, Host=port.host(9000))
    assert other.status_code == 303


async def test_a_cookie_ends_with_the_session_and_after_four_hours(
    port: PortClient, client: httpx2.AsyncClient, database: Database
) -> None:
    session = await signed_in(client, database, "ada")
    cookie, second = await log_in(port, client), await log_in(port, client)
    clock.move(timedelta(hours=4, minutes=-1))
    assert (await visit(port, "/", Cookie=second)).text == "hello"
    clock.move(timedelta(minutes=2))
    async with asyncio.timeout(SOON_SECONDS):
        while (await visit(port, "/", Cookie=second)).status_code != 303:
            await asyncio.sleep(0.1)

    clock.reset()
    assert (await visit(port, "/", Cookie=cookie)).text == "hello"
    async with database.transaction() as conn:
        await sessions.drop(conn, session)
    async with asyncio.timeout(SOON_SECONDS):
        while (await visit(port, "/", Cookie=cookie)).status_code != 303:
            await asyncio.sleep(0.1)


async def test_the_page_of_another_host_cannot_use_the_cookie(
    port: PortClient, client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database, "ada")
    cookie = await log_in(port, client)

    foreign = {"Origin": f"http://{port.host(9000)}", "Accept": "*/*"}
    assert (await visit(port, "/", Cookie=cookie, **foreign)).status_code == 401
    own = {"Origin": f"http://{port.host()}", "Accept": "*/*"}
    assert (await visit(port, "/", Cookie=cookie, **own)).text == "hello"


def a_request(method: str = "GET", **headers: str) -> ProxyRequest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ProxyRequest(
        method=method.encode(),
        target=b"/",
        headers=[(name.encode(), value.encode()) for name, value in named.items()],
    )


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(a_request(), True, id="no browser"),
        pytest.param(a_request(host="a", origin="http://a"), True, id="its own page"),
        pytest.param(a_request(host="a", origin="http://b"), False, id="another page"),
        pytest.param(a_request(host="a", origin="null"), False, id="a page without a home"),
        pytest.param(a_request(sec_fetch_site="same-origin"), True, id="its own picture"),
        pytest.param(a_request(sec_fetch_site="none"), True, id="typed in"),
        pytest.param(
            a_request(sec_fetch_site="same-site"), False, id="a picture on another job's page"
        ),
        pytest.param(a_request(sec_fetch_site="cross-site"), False, id="a picture anywhere else"),
        pytest.param(
            a_request(sec_fetch_site="cross-site", sec_fetch_mode="navigate"), True, id="a link"
        ),
        pytest.param(
            a_request("POST", sec_fetch_site="same-site", sec_fetch_mode="navigate"),
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
        pytest.param(a_request(accept="text/html"), True, id="a page"),
        pytest.param(a_request(accept="*/*"), False, id="curl"),
        pytest.param(a_request("POST", accept="text/html"), False, id="a form"),
        pytest.param(a_request(accept="text/html", sec_fetch_mode="cors"), False, id="a script"),
        pytest.param(
            a_request(accept="text/html", connection="Upgrade", upgrade="websocket"),
            False,
            id="a websocket",
        ),
    ],
)
def test_a_person_opens(request_: ProxyRequest, expected: bool) -> None:  # noqa: FBT001 - a table
    assert is_navigation(request_) is expected
