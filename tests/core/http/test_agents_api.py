"""What agents ask a hub for: harnesses, provisioning, and a page in Markdown."""

import httpx2
import pytest

from hublet.gaps import GAPS

PROVISIONING = "/api/agentic/provisioning"


async def test_provisioning_has_health_and_no_services(client: httpx2.AsyncClient) -> None:
    assert (await client.get(f"{PROVISIONING}/health")).json() == {"status": "ok"}
    assert (await client.get(f"{PROVISIONING}/services")).json() == {"data": []}


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "account_requests"), ("GET", "resources/1"), ("POST", "deep_links")],
)
async def test_what_a_hub_does_not_sell_is_not_found(
    client: httpx2.AsyncClient, method: str, path: str
) -> None:
    response = await client.request(method, f"{PROVISIONING}/{path}")

    assert response.status_code == 404
    assert response.json()["error"].startswith("This hub sells no accounts and no services")


def test_agents_and_mcp_have_no_gap() -> None:
    assert [gap for gap in GAPS if gap.tag in {"agents", "mcp"}] == []


async def test_agents_find_their_way(client: httpx2.AsyncClient) -> None:
    page = await client.get("/llms.txt")

    assert page.headers["content-type"] == "text/markdown; charset=utf-8"
    assert page.text.startswith("# Hublet\n")
    for address in ("/docs", "/.well-known/openapi.md", "/mcp", "/oauth/device"):
        assert f"http://hub.test{address}" in page.text
    assert "HF_ENDPOINT=http://hub.test" in page.text
    assert "{base}" not in page.text
