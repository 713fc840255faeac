"""The app runs beside each test, and the test's hub knows it."""

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import uvicorn
from huggingface_hub import HfApi
from licence_bot.main import create_app
from licence_bot.settings import Settings

from hublet.testing import Hub, User

SECRET = "a shared secret"


@dataclass(frozen=True)
class App:
    url: str
    bot: User


@pytest.fixture
def app(hub: Hub) -> Iterator[App]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        bot = hub.user("licence-bot")
        registered = hub.oauth_app("Licence bot", redirect_uris=[f"{url}/callback"])
        settings = Settings(
            hub=hub.url,
            bot_token=bot.token,
            webhook_secret=SECRET,
            client_id=registered.client_id,
            client_secret=registered.secret,
        )
        config = uvicorn.Config(create_app(settings), log_level="warning")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield App(url=url, bot=bot)
        server.should_exit = True
        thread.join()


@pytest.fixture
def ada(hub: Hub) -> User:
    return hub.user("ada")


@pytest.fixture
def api(app: App, ada: User) -> HfApi:
    """Ada's own client; the app watches all she has."""
    api = HfApi(token=ada.token)
    api.create_webhook(
        url=f"{app.url}/webhook",
        watched=[{"type": "user", "name": "ada"}],
        domains=["repo"],
        secret=SECRET,
    )
    return api
