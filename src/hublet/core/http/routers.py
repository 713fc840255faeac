"""A feature's routes, in the form in which the application takes them."""

from typing import Any

from fastapi import APIRouter, FastAPI


class Router(APIRouter):
    """The routes of a feature. What holds for all routes of the hub is said here."""

    def __init__(self, **options: Any) -> None:
        # The public client sends bodies without a content type; see client contract 0.2.
        super().__init__(strict_content_type=False, **options)


def add_routes(app: FastAPI, router: Router) -> None:
    """Add a feature's routes as they are.

    `include_router` would analyse every one of them a second time, for each application: a
    third of the time in which the hub starts.
    """
    app.router.routes.extend(router.routes)
