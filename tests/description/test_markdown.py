"""The description as Markdown."""

import re
from typing import Annotated

from fastapi import APIRouter, Query, Security

from hublet.core.schema import Schema
from hublet.description import describe, to_markdown
from small_hub import BASE_URL, identify, small_hub

CREATE = r"""### POST /api/settings/webhooks

Create a webhook. Needs the scope `webhooks`.

Body, `application/json`, required:

- `watched` (array of object, required): at least 1 item
  - `type` (string, required): one of `model`, `dataset`
  - `name` (string, required)
- `url` (string (uri), required)
- `secret` (string): matches `^[\x20-\x7f]*$`. Never shown.

```sh
curl -X POST "http://hub.test/api/settings/webhooks" \
  -H "Authorization: Bearer $HF_TOKEN" \
  -H "Content-Type: application/json" \
  -d '{"watched": [{"type": "model", "name": "name"}], "url": "https://example.com/hook"}'
```

Answers:

- `200` OK, `application/json`: object
  - `webhook` (object, required)
    - `id` (string, required): matches `^[0-9a-f]{24}$`
    - `url` (string (uri), required)
    - `title` (string or null, required)
    - `disabled` (boolean or "suspended-after-failure", required)
    - `watched` (array of object, required)
      - `type` (string, required): one of `model`, `dataset`
      - `name` (string, required)
    - `lastTriggerAt` (string (date-time)): matches `Z$`
- `409` There are too many webhooks.
- `400`, `401`, `403`, `413`, `429`, `503`: see [Errors](#errors)
"""

TREE = """### GET /api/models/{repo_id}/tree/{rev}

List the files of a <b>revision</b>. No token needed.

| parameter | in   | type   | rules |
|-----------|------|--------|-------|
| `repo_id` | path | string | required. May contain slashes. |
| `rev`     | path | string | required |

```sh
curl "http://hub.test/api/models/$REPO_ID/tree/$REV"
```

Answers:

- `200` OK, `application/json`: array of string
- `400`, `404`, `429`, `503`: see [Errors](#errors)
"""


Caller = Annotated[str, Security(identify)]


class Inner(Schema):
    a: str
    b: str
    c: str
    d: str
    e: str
    f: str
    g: str
    h: str
    i: str


class Outer(Schema):
    inner: Inner


class Envelope(Schema):
    outer: Outer


def markdown(*routers: APIRouter) -> str:
    return to_markdown(describe(small_hub(*routers), base_url=BASE_URL))


def test_an_operation_with_a_body_reads_from_top_to_bottom() -> None:
    assert CREATE in markdown()


def test_parameters_are_a_table() -> None:
    assert TREE in markdown()


def test_the_parts_follow_one_another() -> None:
    assert re.findall(r"^## (.*)$", markdown(), re.MULTILINE) == [
        "Operations",
        "Authentication",
        "Errors",
        "models",
        "oauth",
        "webhooks",
    ]


def test_the_list_of_operations_comes_first() -> None:
    lines = markdown().splitlines()

    start = lines.index("## Operations")
    assert lines[start + 2 : start + 9] == [
        "- models: Model repositories: information, files, branches and tags.",
        "  - `GET /api/models/{repo_id}/tree/{rev}` List tree",
        "- oauth: Sign-in with OAuth 2 and OpenID Connect, device codes, token exchange.",
        "  - `POST /oauth/device` Start device login",
        "- webhooks: Calls to a URL, or jobs, that follow what happens on the hub.",
        "  - `GET /api/settings/webhooks` List webhooks",
        "  - `POST /api/settings/webhooks` Create webhook",
    ]


def test_every_link_leads_somewhere() -> None:
    text = markdown()
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)

    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= anchors


def test_a_token_is_needed_optional_or_not_needed() -> None:
    router = APIRouter(tags=["users"])

    @router.get("/api/a")
    async def look(_caller: Caller) -> str:
        """Look."""
        return ""

    @router.get("/api/b", openapi_extra={"security": [{}]})
    async def peek(_caller: Caller) -> str:
        """Peek."""
        return ""

    @router.get("/api/c")
    async def stare() -> str:
        """Stare."""
        return ""

    lines = markdown(router).splitlines()
    assert "Look. Needs a token." in lines
    assert "Peek. A token is optional." in lines
    assert "Stare. No token needed." in lines


def test_a_bar_does_not_end_a_cell() -> None:
    router = APIRouter(tags=["users"])

    @router.get("/api/a")
    async def look(q: Annotated[str, Query(pattern="^(a|b)$")]) -> str:
        return q

    assert r"| `q`       | query | string | required; matches `^(a\|b)$` |" in markdown(router)


def test_big_schemas_and_those_inside_them_have_a_part_of_their_own() -> None:
    router = APIRouter(tags=["users"])

    @router.get("/api/a")
    async def look() -> Envelope:
        raise NotImplementedError

    text = markdown(router)
    assert "  - `outer` (object, see [Outer](#schema-outer), required)\n" in text
    assert "- `inner` (object, see [Inner](#schema-inner), required)\n" in text
    assert re.findall(r"^### Schema (.*)$", text, re.MULTILINE) == ["Inner", "Outer"]
