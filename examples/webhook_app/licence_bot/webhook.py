"""The hub tells of a push; the bot reads the model's card and asks for what is missing."""

import hmac
import threading
from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException
from huggingface_hub import HfApi
from huggingface_hub.errors import RepositoryNotFoundError

from licence_bot.settings import Settings

TITLE = "Which licence does this model have?"


def webhook_routes(settings: Settings) -> APIRouter:
    router = APIRouter()
    api = HfApi(endpoint=settings.hub, token=settings.bot_token)
    # Two pushes in a row come beside each other, and must not both find that nobody has asked.
    one_at_a_time = threading.Lock()

    # Not a coroutine: the client blocks, so it gets a thread.
    @router.post("/webhook")
    def receive(
        payload: dict[str, Any], x_webhook_secret: Annotated[str, Header()] = ""
    ) -> dict[str, bool]:
        if not hmac.compare_digest(x_webhook_secret.encode(), settings.webhook_secret.encode()):
            raise HTTPException(403, "The secret is wrong.")
        is_push = payload["event"] == {"action": "update", "scope": "repo.content"}
        repo = payload["repo"]
        if not is_push or repo["type"] != "model":
            return {"asked": False}
        # Whatever fails from here on is a 500, and the hub comes back with it later.
        with one_at_a_time:
            return {"asked": ask_for_licence(api, repo["name"])}

    return router


def ask_for_licence(api: HfApi, repo: str) -> bool:
    """Open a discussion unless there is a licence, or somebody has asked already."""
    try:
        if licence_of(api, repo) is not None:
            return False
        if any(each.title == TITLE for each in api.get_repo_discussions(repo)):
            return False
        api.create_discussion(repo, title=TITLE, description="The card names none.")
    except RepositoryNotFoundError:
        # It is gone, or the bot may not see it: coming back later would not help.
        return False
    return True


def licence_of(api: HfApi, repo: str) -> str | None:
    # Asked for, not downloaded: of a hub that stumbles, the cache would give a card of long ago.
    card = api.model_info(repo).card_data
    return None if card is None else card.get("license")
