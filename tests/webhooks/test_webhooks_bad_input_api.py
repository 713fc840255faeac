"""What a webhook cannot be: each refusal with its sentence, and nothing kept."""

from typing import Any

import httpx2
import pytest

from hublet.core.database import Database
from people import Headers
from webhooks.webhook_calls import (
    BODY,
    IMAGE_JOB,
    JOB_ID,
    PATH,
    URL,
    WATCHED,
    a_source_job,
    create,
    refusal,
    show,
)

ONE_TARGET = "A webhook needs exactly one of url, job and jobSourceId."
NOT_FOR_THIS = (
    "secrets: they are for a webhook with a jobSourceId; those of a job belong into job.secrets."
)
A_SECRET = r"^[a-zA-Z][_a-zA-Z0-9]*$"

# In a body that is right but for this; None leaves a field out.
FIELDS: list[Any] = [
    pytest.param({"url": None}, ONE_TARGET, id="no target"),
    pytest.param({"jobSourceId": JOB_ID}, ONE_TARGET, id="a url and a source"),
    pytest.param({"job": IMAGE_JOB}, ONE_TARGET, id="a url and a job"),
    pytest.param(
        {"url": None, "job": IMAGE_JOB, "jobSourceId": JOB_ID}, ONE_TARGET, id="a job and a source"
    ),
    pytest.param({"watched": None}, "watched is required.", id="nothing said of what to watch"),
    pytest.param({"watched": []}, "watched must have at least 1 item(s).", id="nothing to watch"),
    pytest.param(
        {"watched": WATCHED * 1001}, "watched must have at most 1000 items.", id="too much to watch"
    ),
    pytest.param({"watched": "ada"}, "watched must be an array.", id="watched that is no array"),
    pytest.param({"watched": ["ada"]}, "watched[0] must be an object.", id="an item that is text"),
    pytest.param(
        {"watched": [{"type": "paper", "name": "x"}]},
        "watched[0].type must be one of 'dataset', 'model', 'space', 'bucket', 'kernel', "
        "'container', 'user' or 'org'.",
        id="a type that cannot be watched",
    ),
    pytest.param(
        {"watched": [*WATCHED, {}]},
        "watched[1].type is required. watched[1].name is required.",
        id="an empty item",
    ),
    pytest.param(
        {"watched": [{"type": "user", "name": ""}]},
        "watched[0].name must have at least 1 character(s).",
        id="an item without a name",
    ),
    pytest.param(
        {"watched": [{"type": "user", "name": "a" * 257}]},
        "watched[0].name must have at most 256 characters.",
        id="an item with an endless name",
    ),
    pytest.param({"domains": None}, "domains is required.", id="nothing said of the domains"),
    pytest.param({"domains": []}, "domains must have at least 1 item(s).", id="no domain"),
    pytest.param(
        {"domains": ["repo", "stars"]},
        "domains[1] must be one of 'repo' or 'discussion'.",
        id="an unknown domain",
    ),
    pytest.param(
        {"url": "ftp://example.com"},
        "url: only URLs that begin with http:// or https:// are called.",
        id="another scheme",
    ),
    pytest.param(
        {"url": f"{URL}/" + "a" * 2048},
        "url: a URL has at most 2048 characters.",
        id="an endless url",
    ),
    pytest.param(
        {"url": "http://169.254.169.254/latest"},
        "url: 169.254.169.254 is a metadata service address, which this hub does not call unless outgoing.allow names it.",
        id="an address that the guard refuses",
    ),
    pytest.param(
        {"url": "http://2130706433/"},
        "url: 2130706433 is a loopback address, which this hub does not call unless outgoing.allow names it.",
        id="such an address in a form that only machines read",
    ),
    pytest.param({"url": 5}, "url must be a string.", id="a url that is a number"),
    pytest.param(
        {"url": None, "jobSourceId": "ada/job"},
        "jobSourceId must match ^[0-9a-f]{24}$.",
        id="a source that is no id",
    ),
    pytest.param({"secrets": {"KEY": "v"}}, NOT_FOR_THIS, id="secrets with a url"),
    pytest.param({"secrets": {}}, NOT_FOR_THIS, id="no secrets with a url"),
    pytest.param(
        {"url": None, "job": IMAGE_JOB, "secrets": {"KEY": "v"}},
        NOT_FOR_THIS,
        id="secrets beside a job",
    ),
    pytest.param(
        {"url": None, "jobSourceId": JOB_ID, "secrets": {"1KEY": "v"}},
        f"secrets: each name must match {A_SECRET}.",
        id="a secret whose name begins with a digit",
    ),
    pytest.param(
        {"url": None, "jobSourceId": JOB_ID, "secrets": {"K" * 257: "v"}},
        "secrets: each name must have at most 256 characters.",
        id="a secret with an endless name",
    ),
    pytest.param(
        {"url": None, "jobSourceId": JOB_ID, "secrets": {"KEY": "v" * 65_537}},
        "secrets.KEY must have at most 65536 characters.",
        id="an endless secret of a job",
    ),
    pytest.param(
        {
            "url": None,
            "jobSourceId": JOB_ID,
            "secrets": {f"KEY{number}": "v" * 65_536 for number in range(4)},
        },
        "secrets: all of them together must have at most 262144 bytes.",
        id="secrets that are too large together",
    ),
    pytest.param(
        {"url": None, "jobSourceId": JOB_ID, "secrets": {"KEY": None}},
        "secrets.KEY must be a string.",
        id="a secret that is null",
    ),
    pytest.param(
        {"secret": "clé"},
        "secret: it must have only printable ASCII characters, 0x20 to 0x7E.",
        id="a secret beyond ASCII",
    ),
    pytest.param(
        {"secret": "a\x7fb"},
        "secret: it must not have the character 0x7F (DEL): it is not printable, and no HTTP header "
        "can hold it.",
        id="a secret with the control character at the end of ASCII",
    ),
    pytest.param(
        {"secret": "a\nb"},
        "secret: it must have only printable ASCII characters, 0x20 to 0x7E.",
        id="a secret of two lines",
    ),
    pytest.param(
        {"secret": "s" * 257}, "secret must have at most 256 characters.", id="an endless secret"
    ),
    pytest.param(
        {"url": None, "job": {"flavor": "cpu-basic"}},
        "job: a job needs spaceId or dockerImage.",
        id="a job of nothing",
    ),
    pytest.param(
        {"url": None, "job": IMAGE_JOB | {"volumes": []}},
        "job.volumes must have at least 1 item(s).",
        id="a job without what it lists",
    ),
]


@pytest.fixture(autouse=True)
async def _source_job(database: Database) -> None:
    await a_source_job(database)


def without_none(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


@pytest.mark.parametrize(("fields", "sentence"), FIELDS)
async def test_what_cannot_be_created_is_refused(
    client: httpx2.AsyncClient, ada: Headers, fields: dict[str, Any], sentence: str
) -> None:
    assert await refusal(client, ada, without_none(BODY | fields)) == (400, sentence)
    assert (await client.get(PATH, headers=ada)).json() == []


NOT_ON_UPDATE = {
    "no target",
    "nothing said of what to watch",
    "nothing to watch",
    "nothing said of the domains",
}
# What stands in the stored webhook stands in no body.
IN_AN_UPDATE = [
    each
    for each in FIELDS
    if each.id not in NOT_ON_UPDATE and ("url" in each.values[0] or each.values[1] != ONE_TARGET)
]


@pytest.mark.parametrize(("fields", "sentence"), IN_AN_UPDATE)
async def test_what_cannot_be_changed_so_is_refused(
    client: httpx2.AsyncClient, ada: Headers, fields: dict[str, Any], sentence: str
) -> None:
    webhook = await create(client, ada)
    path = f"{PATH}/{webhook['id']}"

    assert await refusal(client, ada, without_none(fields), path=path) == (400, sentence)

    assert await show(client, ada, webhook["id"]) == webhook


async def test_two_targets_are_refused_whatever_the_webhook_has(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    webhook = await create(client, ada, jobSourceId=JOB_ID)
    path = f"{PATH}/{webhook['id']}"

    for body in (
        {"url": URL, "jobSourceId": JOB_ID},
        {"url": URL, "job": IMAGE_JOB},
        {"job": IMAGE_JOB, "jobSourceId": JOB_ID},
    ):
        assert await refusal(client, ada, body, path=path) == (400, ONE_TARGET)


async def test_every_problem_is_named_at_once(client: httpx2.AsyncClient, ada: Headers) -> None:
    body = {"watched": [], "url": 5, "domains": ["stars"], "jobSourceId": "x", "extra": 1}

    status, sentences = await refusal(client, ada, body)

    assert status == 400
    assert sentences == (
        "url must be a string. jobSourceId must match ^[0-9a-f]{24}$. "
        "watched must have at least 1 item(s). "
        "domains[0] must be one of 'repo' or 'discussion'. extra is not a known field."
    )
