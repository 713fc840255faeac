"""A hub of a few routes, for tests of what describes, draws and checks routes."""

from types import SimpleNamespace
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, FastAPI, Form, Query, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer, SecurityScopes
from pydantic import MISSING, Field

from hublet.core.http import install_error_handlers
from hublet.core.schema import ObjectId, Schema, Timestamp

BASE_URL = "http://hub.test"

_bearer = HTTPBearer(auto_error=False, scheme_name="bearer")


async def identify(
    _needed: SecurityScopes,
    _credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> str:
    return "ada"


Manager = Annotated[str, Security(identify, scopes=["webhooks"])]


class Watched(Schema):
    type: Literal["model", "dataset"]
    name: str


class CreateWebhook(Schema):
    watched: Annotated[list[Watched], Field(min_length=1)]
    url: Annotated[str, Field(json_schema_extra={"format": "uri"})]
    secret: (
        Annotated[str, Field(pattern=r"^[\x20-\x7f]*$", description="Never shown.")] | MISSING
    ) = MISSING


class Webhook(Schema):
    id: ObjectId
    url: Annotated[str, Field(json_schema_extra={"format": "uri"})]
    title: str | None
    disabled: bool | Literal["suspended-after-failure"]
    watched: list[Watched]
    lastTriggerAt: Timestamp | MISSING = MISSING  # noqa: N815 - a name on the wire


class WebhookEnvelope(Schema):
    webhook: Webhook


router = APIRouter()


@router.get("/api/settings/webhooks", tags=["webhooks"])
async def list_webhooks(
    _caller: Manager, p: Annotated[int, Query(ge=0, description="The page.")] = 0
) -> list[Webhook]:
    """List the caller's webhooks, oldest first."""
    return []


@router.post(
    "/api/settings/webhooks",
    tags=["webhooks"],
    responses={409: {"description": "There are too many webhooks."}},
)
async def create_webhook(_caller: Manager, request: CreateWebhook) -> WebhookEnvelope:
    """Create a webhook."""
    webhook = {"id": "a" * 24, "title": None, "disabled": False}
    return WebhookEnvelope.model_validate({"webhook": webhook | request.model_dump()})


@router.get("/api/settings/webhooks/{webhook_id}", tags=["webhooks"])
async def get_webhook(_caller: Manager, webhook_id: str) -> WebhookEnvelope:
    """Get one webhook of the caller's."""
    raise NotImplementedError(webhook_id)


@router.get("/api/models/{repo_id:path}/tree/{rev}", tags=["models"])
async def list_tree(repo_id: str, rev: str) -> list[str]:
    """List the files of a <b>revision</b>."""
    return [repo_id, rev]


@router.post("/oauth/device", tags=["oauth"], status_code=202)
async def start_device_login(client_id: Annotated[str, Form()]) -> dict[str, str]:
    """Start a login on another device."""
    return {"client": client_id}


def small_hub(*routers: APIRouter) -> FastAPI:
    """Build an app from these routers, or from the routes above."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.state.settings = SimpleNamespace(base_url=BASE_URL)
    install_error_handlers(app)
    for each in routers or (router,):
        app.include_router(each)
    return app
