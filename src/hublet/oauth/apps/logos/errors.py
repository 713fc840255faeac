"""What can be wrong with a logo."""

from hublet.core.errors import InvalidRequest, NotFound, TooLarge


class LogoNotFound(NotFound):
    def __init__(self, app_id: str) -> None:
        super().__init__(f"There is no logo of an app {app_id}.")


class NotALogo(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("The body must be a PNG, JPEG, GIF or WebP image.")


class LogoTooLarge(TooLarge):
    def __init__(self, limit: int) -> None:
        super().__init__(f"A logo must have at most {limit} bytes.")
