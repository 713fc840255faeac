"""`WebhooksServer`: handlers under `/webhooks/…`, as a server of its own or mounted in another."""

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from hublet.receiver import environment
from hublet.receiver.application import ReceiverApplication
from hublet.receiver.pages import application_for, run_lifespan
from hublet.receiver.requests import Rules
from hublet.receiver.signatures import TOLERANCE_SECONDS
from hublet.receiver.threads import Threads

if TYPE_CHECKING:
    from hublet.receiver.launch import Launch

log = logging.getLogger("hublet.receiver")

_MAX_BODY_BYTES = 5 * 2**20
_TIMEOUT_SECONDS = 10.0

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _EnvironmentDefault:
    """Stands for the default of the environment."""


_FROM_ENVIRONMENT = _EnvironmentDefault()


class WebhooksServer:
    """Receives webhooks: register handlers with `add_webhook`, then `launch`, or mount it.

    Works where `huggingface_hub.WebhooksServer` does, and is an ASGI application besides.

    - `ui`: a page in place of the landing page: HTML, a response, a function that returns one of
      these, an ASGI application, or an interface of gradio.
    - `webhook_secret`: the secret of the senders; without it, the variable WEBHOOK_SECRET.
    - `secrets`: more of them, all as good: the old and the new one while a secret is changed.
    - `require_signature`: the secret alone is not enough, a good signature must come along.
    - `tolerance_seconds`: how far the time of a signature may be from now (None: any).
    - `max_body_bytes`, `timeout_seconds`: limits of a body, and of a handler before the sender is
      told that it takes too long (None: no limit).
    - `spool`: a file. Deliveries are kept in it, answered with 202, and handled afterwards: each
      id once, the oldest first, again after a failure or a crash.
    - `idle_shutdown_seconds`: how long a launched server may be idle before it stops (None: for
      ever); left out, 48 hours on a cpu-basic space and for ever elsewhere.
    """

    def __init__(  # noqa: PLR0913 - independent options, each with a default.
        self,
        ui: Any = None,
        webhook_secret: str | None = None,
        *,
        secrets: Sequence[str] = (),
        require_signature: bool = False,
        tolerance_seconds: float | None = TOLERANCE_SECONDS,
        max_body_bytes: int = _MAX_BODY_BYTES,
        timeout_seconds: float | None = _TIMEOUT_SECONDS,
        spool: str | Path | None = None,
        idle_shutdown_seconds: float | _EnvironmentDefault | None = _FROM_ENVIRONMENT,
    ) -> None:
        # A secret that was given counts alone: the variable may hold one that is no longer good.
        if not webhook_secret and not secrets:
            webhook_secret = environment.webhook_secret()
        self._secret, self._more_secrets = webhook_secret or None, secrets
        self.registered_webhooks: dict[str, Callable[..., Any]] = {}
        rules = Rules(
            secrets=_all_secrets(webhook_secret, secrets),
            require_signature=require_signature,
            tolerance_seconds=tolerance_seconds,
            max_body_bytes=max_body_bytes,
            timeout_seconds=timeout_seconds,
        )
        _check_rules(rules)
        self._ui: ASGIApp | None = None if ui is None else application_for(ui)
        self._application = ReceiverApplication(
            rules, self._ui, None if spool is None else Path(spool)
        )
        self._idle_seconds = (
            environment.idle_shutdown_seconds()
            if isinstance(idle_shutdown_seconds, _EnvironmentDefault)
            else idle_shutdown_seconds
        )
        self._launched: Launch | None = None

    @property
    def webhook_secret(self) -> str | None:
        """The secret of the senders. A new value counts from the next request on."""
        return self._secret

    @webhook_secret.setter
    def webhook_secret(self, secret: str | None) -> None:
        rules = replace(self._application.rules, secrets=_all_secrets(secret, self._more_secrets))
        _check_rules(rules)
        self._secret, self._application.rules = secret or None, rules

    @overload
    def add_webhook(self, path: _Function) -> _Function: ...

    @overload
    def add_webhook(self, path: str | None = None) -> Callable[[_Function], _Function]: ...

    def add_webhook(self, path: Any = None) -> Any:
        """Register a function under `/webhooks/`: `@app.add_webhook` or `@app.add_webhook("/name")`.

        Without a path its name is taken. A path that is taken already is a ValueError.
        """
        if callable(path):
            return self.add_webhook()(path)

        def register(function: _Function) -> _Function:
            name = path or getattr(function, "__name__", "")
            full_path = f"/webhooks/{name.strip('/')}"
            if full_path in self.registered_webhooks:
                raise ValueError(f"Webhook {full_path} already exists.")
            self._application.add(full_path, function)
            self.registered_webhooks[full_path] = function
            return function

        return register

    def launch(self, prevent_thread_lock: bool = False, **options: Any) -> None:  # noqa: FBT001, FBT002 - the public library's signature
        """Serve until a signal or `close`; with `prevent_thread_lock`, in a thread beside the script.

        Of gradio's options it reads `server_name`, `server_port`, `root_path`, `quiet` and `ssl_…`,
        and ignores the others with a warning.
        """
        launch = self.prepare_launch(options)
        if prevent_thread_lock:
            launch.start()
        else:
            launch.run()

    def prepare_launch(self, options: dict[str, Any], threads: Threads | None = None) -> "Launch":
        """Bind a port for a run of this server, without starting it."""
        # A mounted server needs no HTTP server of its own, so this import waits.
        from hublet.receiver.launch import Launch, LaunchOptions  # noqa: PLC0415

        if self._launched is not None and self._launched.is_alive:
            raise RuntimeError(f"This server runs already, at {self._launched.url}.")
        self._launched = Launch(
            self,
            LaunchOptions.of(options),
            paths=list(self.registered_webhooks),
            is_idle=None if self._idle_seconds is None else self._is_idle,
            threads=threads,
        )
        return self._launched

    def _is_idle(self) -> bool:
        application = self._application
        if self._idle_seconds is None or application.is_busy:
            return False
        return environment.monotonic() - application.active_at >= self._idle_seconds

    @property
    def local_url(self) -> str | None:
        """Address of a launched server on this machine."""
        return None if self._launched is None else self._launched.url

    def close(self) -> None:
        """Stop a launched server; requests in flight are answered first."""
        if self._launched is not None:
            self._launched.stop()

    @asynccontextmanager
    async def lifespan(self, _app: object = None) -> AsyncIterator[None]:
        """Work from the spool while this is open: `FastAPI(lifespan=server.lifespan)`.

        Only a mounted server with a spool needs it, to go on at once with what was left.
        """
        async with AsyncExitStack() as stack:
            if self._ui is not None:
                await stack.enter_async_context(run_lifespan(self._ui))
            if (spool := self._application.spool) is not None:
                stack.push_async_callback(spool.stop)
                await spool.start()
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await Router(lifespan=self.lifespan).lifespan(scope, receive, send)
        elif scope["type"] == "http":
            await self._application(scope, receive, send)
        elif self._ui is not None:
            await self._ui(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})


def _all_secrets(webhook_secret: str | None, secrets: Sequence[str]) -> tuple[str, ...]:
    if isinstance(secrets, str):
        raise TypeError("secrets is a list of secrets; a single one is webhook_secret.")
    every = ([webhook_secret] if webhook_secret else []) + list(secrets)
    if not all(every):
        raise ValueError("A secret must not be empty.")
    return tuple(dict.fromkeys(every))


def _check_rules(rules: Rules) -> None:
    if rules.require_signature and not rules.secrets:
        raise ValueError("require_signature needs a secret to check signatures with.")
    if rules.max_body_bytes < 1:
        raise ValueError("max_body_bytes must be at least 1.")
    for name in ("tolerance_seconds", "timeout_seconds"):
        if (seconds := getattr(rules, name)) is not None and seconds <= 0:
            raise ValueError(f"{name} must be more than 0, or None for no limit.")
    if not rules.secrets:
        log.warning(
            "No webhook secret is set: the endpoints are open to everyone. Set the variable "
            "WEBHOOK_SECRET, or pass it: WebhooksServer(webhook_secret=…)."
        )
