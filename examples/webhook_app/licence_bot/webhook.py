"""The hub tells of a push; the bot reads the model's card and asks for what is missing."""

import hmac
from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException
from huggingface_hub import HfApi, ModelCard
from huggingface_hub.errors import EntryNotFoundError

from licence_bot.settings import Settings

TITLE = "Which licence does this model have?"


def webhook_routes(settings: Settings) -> APIRouter:
    router = APIRouter()
    api = HfApi(endpoint=settings.hub, token=settings.bot_token)

    # Not a coroutine: the client blocks, so it gets a thread.
    @router.post("/webhook")
    def receive(
        payload: dict[str, Any], x_webhook_secret: Annotated[str, Header()] = ""
    ) -> dict[str, bool]:
        if not hmac.compare_digest(x_webhook_secret.encode(), settings.webhook_secret.encode()):
            raise HTTPException(403, "The secret is wrong.")
        is_push = payload["event"] == {"action": "update", "scope": "repo.content"}
        # Whatever fails from here on is a 500, and the hub comes back with it later.
        return {"asked": is_push and ask_for_licence(api, payload["repo"]["name"])}

    return router


def ask_for_licence(api: HfApi, repo: str) -> bool:
    """Open a discussion unless there is a licence, or somebody has asked already."""
    if licence_of(api, repo) is not None:
        return False
    if any(each.title == TITLE for each in api.get_repo_discussions(repo)):
        return False
    api.create_discussion(repo, title=TITLE, description="The card names none.")
    return True


def licence_of(api: HfApi, repo: str) -> str | None:
    try:
        path = api.hf_hub_download(repo, "README.md")
    except EntryNotFoundError:
        return None
    return ModelCard.load(path).data.get("license")
