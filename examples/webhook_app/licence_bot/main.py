"""The app."""

from fastapi import FastAPI

from licence_bot.settings import Settings
from licence_bot.sign_in import sign_in_routes
from licence_bot.webhook import webhook_routes


def create_app(settings: Settings) -> FastAPI:
    app = FastAPI(title="Licence bot")
    app.include_router(webhook_routes(settings))
    app.include_router(sign_in_routes(settings))
    return app


def from_environment() -> FastAPI:
    return create_app(Settings.from_environment())
