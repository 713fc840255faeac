"""Handlers in every form: how they are registered, what they are given, what they return."""

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, Optional

import fastapi
import huggingface_hub
import pytest
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.background import BackgroundTasks
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from hublet.receiver import WebhookPayload, WebhooksServer
from patience import SOON_SECONDS
from receiver.deliveries import BODY, JSON, PAYLOAD, post


@pytest.fixture
def server() -> WebhooksServer:
    return WebhooksServer(webhook_secret="coal")


async def answer_of(server: WebhooksServer, path: str, **changes: Any) -> tuple[int, Any]:
    answer = await post(server, path, headers=JSON | {"x-webhook-secret": "coal"}, **changes)
    return answer.status_code, answer.json()


async def test_every_form_of_the_decorator_registers(server: WebhooksServer) -> None:
    @server.add_webhook
    async def plain(payload: WebhookPayload) -> str:
        return "plain"

    @server.add_webhook()
    async def called(payload: WebhookPayload) -> str:
        return "called"

    @server.add_webhook("/named/deep/")
    async def other(payload: WebhookPayload) -> str:
        return "named"

    @server.add_webhook(path="by_keyword")
    async def another(payload: WebhookPayload) -> str:
        return "by keyword"

    assert server.registered_webhooks == {
        "/webhooks/plain": plain,
        "/webhooks/called": called,
        "/webhooks/named/deep": other,
        "/webhooks/by_keyword": another,
    }
    for path, said in [("plain", "plain"), ("called", "called"), ("named/deep", "named")]:
        assert await answer_of(server, f"/webhooks/{path}") == (200, said)
    # Unlike with the public library, the name still means the function.
    assert await plain(WebhookPayload.model_validate(PAYLOAD)) == "plain"


def test_a_path_is_taken_once(server: WebhooksServer) -> None:
    def first(payload: WebhookPayload) -> None: ...

    server.add_webhook(first)

    with pytest.raises(ValueError, match=r"^Webhook /webhooks/first already exists\.$"):
        server.add_webhook("/first/")(first)
    assert list(server.registered_webhooks) == ["/webhooks/first"]


class _Own(BaseModel):
    event: dict[str, str]


class _Level(Enum):
    high = "high"


def _sync(payload: WebhookPayload) -> Any:
    return payload.repo.name


def _request_by_name(payload: WebhookPayload, request) -> Any:  # type: ignore[no-untyped-def]  # noqa: ANN001
    return [payload.repo.name, request.headers["x-webhook-secret"]]


async def _request_by_class(info: Request) -> Any:
    return [info.method, info.url.path, await info.json() == PAYLOAD, len(await info.body())]


async def _fastapi_request(anything: fastapi.Request, payload: WebhookPayload) -> Any:
    return [anything.query_params["a"], payload.event.action]


def _unannotated(payload) -> Any:  # type: ignore[no-untyped-def]  # noqa: ANN001
    return payload.repo.head_sha


def _named_otherwise(event: "WebhookPayload") -> Any:
    return event.event.action


def _unknown_name(payload: "NotThere") -> Any:  # type: ignore[name-defined]  # noqa: F821
    return payload.repo.name


def _of_the_public_library(payload: huggingface_hub.WebhookPayload) -> Any:
    return type(payload).__module__.partition(".")[0]


def _of_ones_own(payload: _Own) -> Any:
    return payload.event["scope"]


def _as_a_dictionary(payload: dict[str, Any]) -> Any:
    return payload["repo"]["headSha"]


def _with_a_default(payload: WebhookPayload, count=3, *more: Any, **others: Any) -> Any:  # type: ignore[no-untyped-def]  # noqa: ANN001
    return [count, more, others]


def _in_a_wrapping(payload: Annotated[Optional[WebhookPayload], "noted"] = None) -> Any:  # noqa: UP045 - older scripts write it so
    return payload and payload.repo.name


def _from_the_query(
    payload: WebhookPayload, a: str, n: int = 7, level: _Level | None = None
) -> Any:
    return [a, n, level and level.value]


class _Object:
    async def __call__(self, payload: WebhookPayload) -> str:
        return payload.repo.name


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        pytest.param(_sync, "ada/engine", id="in a thread"),
        pytest.param(_request_by_name, ["ada/engine", "coal"], id="a request by its name"),
        pytest.param(
            _request_by_class, ["POST", "/webhooks/hook", True, len(BODY)], id="by its class"
        ),
        pytest.param(_fastapi_request, ["b", "update"], id="FastAPI's request"),
        pytest.param(_unannotated, PAYLOAD["repo"]["headSha"], id="a bare payload"),
        pytest.param(_named_otherwise, "update", id="a payload under another name"),
        pytest.param(_unknown_name, "ada/engine", id="an annotation nobody can resolve"),
        pytest.param(_of_the_public_library, "huggingface_hub", id="the public library's"),
        pytest.param(_of_ones_own, "repo.content", id="a model of one's own"),
        pytest.param(_as_a_dictionary, PAYLOAD["repo"]["headSha"], id="a dictionary"),
        pytest.param(_with_a_default, [3, [], {}], id="what has a default"),
        pytest.param(_in_a_wrapping, "ada/engine", id="wrapped"),
        pytest.param(_from_the_query, ["b", 7, None], id="from the query"),
        pytest.param(_Object(), "ada/engine", id="an object"),
    ],
)
async def test_a_handler_is_given_what_it_asks_for(
    server: WebhooksServer, handler: Callable[..., Any], said: Any
) -> None:
    server.add_webhook("hook")(handler)

    assert await answer_of(server, "/webhooks/hook?a=b") == (200, said)


async def test_a_handler_without_a_payload_does_not_look_at_the_body(
    server: WebhooksServer,
) -> None:
    @server.add_webhook
    async def bell() -> str:
        return "ding"

    assert await answer_of(server, "/webhooks/bell", body=b"no JSON") == (200, "ding")


async def test_what_is_missing_in_the_query_is_told_with_the_rest(server: WebhooksServer) -> None:
    server.add_webhook("hook")(_from_the_query)

    status, told = await answer_of(server, "/webhooks/hook?n=x", body=b"")

    assert status == 422
    assert [(each["type"], each["loc"]) for each in told["detail"]] == [
        ("missing", ["body"]),
        ("missing", ["query", "a"]),
        ("int_parsing", ["query", "n"]),
    ]


async def test_a_default_stands_in_for_a_missing_body(server: WebhooksServer) -> None:
    server.add_webhook("hook")(_in_a_wrapping)

    assert await answer_of(server, "/webhooks/hook", body=b"") == (200, None)


class _Result(BaseModel):
    shown_as: str = Field(serialization_alias="shownAs")


@pytest.mark.parametrize(
    ("result", "written"),
    [
        pytest.param(None, None, id="nothing"),
        pytest.param({"a": [1, 2.5, True, None]}, {"a": [1, 2.5, True, None]}, id="an object"),
        pytest.param(_Result(shown_as="x"), {"shownAs": "x"}, id="a model"),
        pytest.param({"at": datetime(2026, 11, 15, tzinfo=UTC)}, {"at": "2026-11-15T00:00:00Z"}, id="a time"),
        pytest.param({"not": float("nan")}, {"not": None}, id="no number"),
    ],
)  # fmt: skip
async def test_what_it_returns_is_the_answer(
    server: WebhooksServer, result: Any, written: Any
) -> None:
    @server.add_webhook
    def hook(payload: WebhookPayload) -> Any:
        return result

    assert await answer_of(server, "/webhooks/hook") == (200, written)


async def test_what_cannot_be_written_is_a_failure_in_the_log(
    server: WebhooksServer, caplog: pytest.LogCaptureFixture
) -> None:
    @server.add_webhook
    def hook(payload: WebhookPayload) -> Any:
        return object()

    answer = await post(server, "/webhooks/hook", headers=JSON | {"x-webhook-secret": "coal"})

    assert (answer.status_code, answer.text) == (500, "Internal Server Error")
    assert "What a handler returned cannot be written as JSON." in caplog.text


async def test_a_response_is_sent_as_it_is(server: WebhooksServer) -> None:
    @server.add_webhook
    def created(payload: WebhookPayload) -> Any:
        return JSONResponse({"made": 1}, status_code=201, headers={"x-more": "yes"})

    @server.add_webhook
    def text(payload: WebhookPayload) -> Any:
        return PlainTextResponse("well")

    headers = JSON | {"x-webhook-secret": "coal"}
    answer = await post(server, "/webhooks/created", headers=headers)
    plain = await post(server, "/webhooks/text", headers=headers)

    assert (answer.status_code, answer.json(), answer.headers["x-more"]) == (
        201,
        {"made": 1},
        "yes",
    )
    assert (plain.text, plain.headers["content-type"]) == ("well", "text/plain; charset=utf-8")


@pytest.mark.parametrize("kind", [HTTPException, fastapi.HTTPException])
async def test_a_refusal_of_the_handlers_own_is_answered(
    server: WebhooksServer, kind: type[HTTPException], caplog: pytest.LogCaptureFixture
) -> None:
    @server.add_webhook
    def hook(payload: WebhookPayload) -> None:
        raise kind(status_code=418, detail="Short and stout.", headers={"x-pot": "tea"})

    answer = await post(server, "/webhooks/hook", headers=JSON | {"x-webhook-secret": "coal"})

    assert (answer.status_code, answer.json()) == (418, {"detail": "Short and stout."})
    assert answer.headers["x-pot"] == "tea"
    assert caplog.records == []


async def test_background_tasks_run_after_the_answer(
    server: WebhooksServer, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[str] = []

    def fail() -> None:
        raise RuntimeError("Out of coal.")

    @server.add_webhook
    async def hook(payload: WebhookPayload, later: fastapi.BackgroundTasks) -> list[str]:
        assert isinstance(later, fastapi.BackgroundTasks)
        later.add_task(done.append, payload.repo.name)
        later.add_task(fail)
        return list(done)

    assert await answer_of(server, "/webhooks/hook") == (200, [])
    assert done == ["ada/engine"]
    assert "A background task of /webhooks/hook failed." in caplog.text


def _two_payloads(payload: WebhookPayload, other: WebhookPayload) -> None: ...


def _by_position(payload: WebhookPayload, /) -> None: ...


def _with_a_dependency(payload: WebhookPayload, user: str = fastapi.Header()) -> None: ...


def _with_a_header_in_its_type(
    payload: WebhookPayload, user: Annotated[str, fastapi.Header()] = ""
) -> None: ...


def _with_a_dependency_in_its_type(
    payload: WebhookPayload, user: Annotated[str | None, "noted", fastapi.Depends(str)]
) -> None: ...


def _with_a_cookie_in_its_type(
    payload: WebhookPayload, user: Annotated[str, fastapi.Cookie()] | None = None
) -> None: ...


@pytest.mark.parametrize(
    ("handler", "sentence"),
    [
        pytest.param(
            _two_payloads,
            r"A handler takes one payload, _two_payloads wants \['payload', 'other'\]\.",
            id="two payloads",
        ),
        pytest.param(_by_position, "_by_position cannot be given payload by its name", id="by position"),
        pytest.param(
            _with_a_dependency,
            r"_with_a_dependency asks for Header\(…\), which needs FastAPI itself",
            id="a dependency of FastAPI",
        ),
        # Taken for a value in the query, the sender would choose it.
        pytest.param(
            _with_a_header_in_its_type, r"asks for Header\(…\), which needs FastAPI", id="a header"
        ),
        pytest.param(
            _with_a_dependency_in_its_type, r"asks for Depends\(…\), which needs", id="a dependency"
        ),
        pytest.param(
            _with_a_cookie_in_its_type, r"asks for Cookie\(…\), which needs FastAPI", id="a cookie"
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_given_is_said_at_once(
    server: WebhooksServer, handler: Callable[..., Any], sentence: str
) -> None:
    with pytest.raises(TypeError, match=sentence):
        server.add_webhook("hook")(handler)
    assert server.registered_webhooks == {}


async def test_a_handler_that_blocks_holds_nobody_up(server: WebhooksServer) -> None:
    held = threading.Event()

    @server.add_webhook
    def waits(payload: WebhookPayload) -> bool:
        return held.wait(SOON_SECONDS)

    @server.add_webhook
    async def frees(payload: WebhookPayload) -> None:
        held.set()

    answers = await asyncio.gather(
        answer_of(server, "/webhooks/waits"), answer_of(server, "/webhooks/frees")
    )

    assert list(answers) == [(200, True), (200, None)]


async def test_starlettes_background_tasks_are_as_good(server: WebhooksServer) -> None:
    done: list[int] = []

    @server.add_webhook
    def hook(later: BackgroundTasks) -> None:
        later.add_task(done.append, 1)

    assert await answer_of(server, "/webhooks/hook") == (200, None)
    assert done == [1]
