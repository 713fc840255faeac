"""A load that survives kills: comments, one after the other, on a repository that webhooks watch."""

import http.client
import json
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from benchmarks.content import OWNER, Account

_REPO = "engine"
_PATH = f"/api/models/{OWNER}/{_REPO}/discussions"
_PAUSE_SECONDS = 0.002


class CommentLoad:
    """Comments from a thread for as long as the block takes, whether or not the hub answers."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._thread = threading.Thread(target=self._comment_on)
        self._over = threading.Event()
        # Comments that the hub said it has, and when it said so.
        self._acknowledged: dict[str, float] = {}

    def prepare(self, urls: Sequence[str]) -> None:
        """Create a repository, a discussion, and a webhook for each URL."""
        self._account.create_repo(_REPO)
        self._send(_PATH, {"title": "What do you think of it?", "description": "Tell us."})
        watched = [{"type": "model", "name": f"{OWNER}/{_REPO}"}]
        for url in urls:
            body = {"url": url, "watched": watched, "domains": ["discussion"]}
            self._send("/api/settings/webhooks", body)

    @property
    def acknowledged(self) -> set[str]:
        return set(self._acknowledged)

    def first_answer_since(self, moment: float) -> float | None:
        """Return when the hub first answered after a moment of the monotonic clock."""
        return next((at for at in list(self._acknowledged.values()) if at > moment), None)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _comment_on(self) -> None:
        while not self._over.wait(_PAUSE_SECONDS):
            try:
                answer = self._send(f"{_PATH}/1/comment", {"comment": "It turns well."})
            except (OSError, http.client.HTTPException):
                # It was just killed, or starts: nobody knows what became of this comment.
                continue
            self._acknowledged[answer["newMessage"]["id"]] = time.monotonic()

    def _send(self, path: str, body: object) -> Any:
        return self._account.send("POST", path, json.dumps(body).encode())
