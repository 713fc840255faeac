"""What a hub in test mode does wrong on purpose."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from hublet.app import create_application, with_edge
from hublet.core.clock import monotonic
from hublet.core.database import Database
from hublet.core.http.faults import Fault, Faults

PATH = "/api/test-mode/faults"
DEFAULTS: dict[str, object] = {
    "status": None,
    "delaySeconds": 0.0,
    "headers": {},
    "method": None,
    "path": None,
    "times": 1,
}


@pytest.fixture
async def testing(database: Database) -> AsyncIterator[httpx2.AsyncClient]:
    object.__setattr__(database.hub.settings.server, "test_mode", True)
    transport = httpx2.ASGITransport(app=with_edge(create_application(database)))
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as testing:
        yield testing


async def plan(testing: httpx2.AsyncClient, **fault: object) -> None:
    planned = await testing.post(PATH, json=fault)
    assert (planned.status_code, planned.json()) == (200, {})


async def statuses(testing: httpx2.AsyncClient, *paths: str) -> list[int]:
    return [(await testing.get(path)).status_code for path in paths]


async def test_outside_of_test_mode_there_is_nothing_of_it(
    client: httpx2.AsyncClient, database: Database
) -> None:
    assert (await client.post(PATH, json={"status": 503})).status_code == 404
    assert not hasattr(create_application(database).state, "faults")


async def test_a_planned_fault_is_listed_until_it_has_come(testing: httpx2.AsyncClient) -> None:
    await plan(testing, status=503, times=2)
    await plan(testing, delaySeconds=0.01, method="GET", path="/api/*")
    first = DEFAULTS | {"status": 503, "times": 2}
    second = DEFAULTS | {"delaySeconds": 0.01, "method": "GET", "path": "/api/*"}
    assert (await testing.get(PATH)).json() == [first, second]

    assert await statuses(testing, "/healthz") == [503]
    assert (await testing.get(PATH)).json() == [first | {"times": 1}, second]
    assert await statuses(testing, "/healthz", "/healthz") == [503, 200]
    assert (await testing.get(PATH)).json() == [second]


async def test_a_fault_is_a_whole_answer(testing: httpx2.AsyncClient) -> None:
    await plan(testing, status=429, headers={"Retry-After": "3"})

    failed = await testing.get("/api/whoami-v2")

    assert failed.status_code == 429
    assert failed.json() == {"error": "The hub is in test mode, and was asked to fail here."}
    assert failed.headers["retry-after"] == "3"
    assert len(failed.headers["x-request-id"]) == 32


async def test_a_delay_comes_before_the_right_answer(testing: httpx2.AsyncClient) -> None:
    await plan(testing, delaySeconds=0.1, path="/healthz")

    begun = monotonic()
    answer = await testing.get("/healthz")

    assert monotonic() - begun >= 0.1
    assert answer.json() == {"status": "ok"}


async def test_all_is_forgotten_when_asked(testing: httpx2.AsyncClient) -> None:
    await plan(testing, status=500, times=9)

    assert (await testing.delete(PATH)).json() == {}

    assert await statuses(testing, "/healthz") == [200]


async def test_whoever_steers_the_tests_is_spared(testing: httpx2.AsyncClient) -> None:
    await plan(testing, status=500)

    spared = await testing.get("/healthz", headers={"X-Hublet-Testing": "1"})

    assert spared.status_code == 200
    assert await statuses(testing, "/healthz") == [500]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"status": 200}, id="a status that is no failure"),
        pytest.param({"status": 600}, id="a status that does not exist"),
        pytest.param({"times": 0}, id="no times at all"),
        pytest.param({"delaySeconds": 301}, id="a delay of more than five minutes"),
        pytest.param({"path": "api"}, id="a path without a slash"),
        pytest.param({"method": "get"}, id="a method in small letters"),
        pytest.param({"headers": {"X Y": "1"}}, id="a header's name with a blank"),
        pytest.param({"headers": {"X": "1\n2"}}, id="a header of two lines"),
        pytest.param({"colour": "red"}, id="a field that nobody knows"),
    ],
)
async def test_a_wrong_plan_is_refused(
    testing: httpx2.AsyncClient, wrong: dict[str, object]
) -> None:
    refused = await testing.post(PATH, json=wrong)

    assert refused.status_code == 400
    assert next(iter(wrong)) in refused.json()["error"]
    assert (await testing.get(PATH)).json() == []


@pytest.mark.parametrize(
    ("fault", "method", "path", "fits"),
    [
        pytest.param(Fault(), "GET", "/", True, id="nothing said fits everything"),
        pytest.param(Fault(method="POST"), "GET", "/", False, id="another method"),
        pytest.param(Fault(path="/api/models"), "GET", "/api/models", True, id="the same path"),
        pytest.param(Fault(path="/api/models"), "GET", "/api/models/a", False, id="a longer path"),
        pytest.param(Fault(path="/api/*"), "GET", "/api/models/a", True, id="a star for the rest"),
        pytest.param(Fault(path="*/tree/*"), "GET", "/api/m/tree/x", True, id="a star before"),
        pytest.param(Fault(path="/API/*"), "GET", "/api/x", False, id="large letters count"),
    ],
)
def test_which_requests_a_fault_is_for(
    fault: Fault,
    method: str,
    path: str,
    fits: bool,  # noqa: FBT001 - a column of the table
) -> None:
    faults = Faults()
    faults.plan(fault)

    assert (faults.next_for(method, path) is fault) is fits
