"""Hub of a test: creates users, organizations, tokens and apps, moves its clock, and injects faults."""

import email
import email.policy
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from functools import cached_property
from pathlib import Path
from typing import Any

from hublet.core.dataclasses import dataclass
from hublet.testing.browser import Browser
from hublet.testing.environment import Variables, clients_endpoint
from hublet.testing.errors import CannotLogIn, Refused
from hublet.testing.process import HubProcess, Port
from hublet.testing.webhooks import Webhooks


class Clock:
    """Moves the time of the hub: retries, expiry and schedules follow it."""

    def __init__(self, process: HubProcess) -> None:
        self._process = process

    def now(self, *, timeout: float = 30.0) -> datetime:
        """Return the hub's time, once it has done all that is due."""
        return self._read(self._process.command("settle", seconds=timeout))

    def forward(
        self,
        by: timedelta = timedelta(),
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        timeout: float = 30.0,
    ) -> datetime:
        """Let time pass: whatever becomes due on the way is done at its own time, in order.

        Returns the hub's time when all that is done. `timeout` is real seconds, for each moment
        at which something is due.
        """
        by += timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        if by < timedelta():
            raise ValueError("Time passes forward only; clock.set() can turn it back.")
        return self._read(self._process.command("forward", by=by.total_seconds(), seconds=timeout))

    def set(self, moment: datetime, *, timeout: float = 30.0) -> datetime:
        """Let time pass until this moment, or turn the clock back to it."""
        if moment.tzinfo is None:
            raise ValueError("A moment needs a time zone, such as datetime.UTC.")
        by = moment - self.now()
        if by >= timedelta():
            return self.forward(by, timeout=timeout)
        return self._read(self._process.command("jump", by=by.total_seconds(), seconds=timeout))

    @staticmethod
    def _read(reply: dict[str, str]) -> datetime:
        return datetime.fromisoformat(reply["now"]).astimezone(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    name: str
    email: str
    # Of the role "write": it may do all that its owner may.
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Organization:
    name: str
    plan: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthApp:
    client_id: str
    secret: str = field(repr=False)


# Exempts the requests of this module from the faults that a test injects.
_FAULT_EXEMPTION = {"X-Hublet-Testing": "1"}
_SECONDS = 30.0

# A proxy of the developer's could not reach the hub.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def call_hub(
    method: str,
    url: str,
    *,
    token: str | None = None,
    body: object = None,
    query: Mapping[str, object] | None = None,
) -> Any:
    """Return the JSON of the response, or raise Refused."""
    if query:
        url += "?" + urllib.parse.urlencode(query, doseq=True)
    headers = {**_FAULT_EXEMPTION, "Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers=headers, method=method)  # noqa: S310 - it is the hub
    try:
        with _opener.open(request, timeout=_SECONDS) as response:
            return json.loads(response.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            text = error.read().decode(errors="replace")
        raise Refused(f"{method} {url}", error.code, text) from None


_ADMINISTRATOR = "admin"
# Good enough for a hub that only this machine can reach.
_PASSWORD = "correct horse battery staple"  # noqa: S105 - as above


class Hub:
    """A real hub, reset before each test."""

    def __init__(self, process: HubProcess) -> None:
        self._process = process
        self.url = process.url
        self._login = Variables()
        self.webhooks = Webhooks(process)
        self.clock = Clock(process)

    @cached_property
    def admin(self) -> User:
        """The hub administrator, who is always there."""
        return User(name=_ADMINISTRATOR, email="", token=self._process.admin_token)

    def user(
        self,
        name: str,
        *,
        email: str | None = None,
        fullname: str | None = None,
        password: str | None = None,
        admin: bool = False,
    ) -> User:
        """Create a user, with a token that may do all that the user may."""
        email = email or f"{name}@example.com"
        given = {"name": name, "email": email, "fullname": fullname, "password": password}
        self._manage("POST", "users", {**_without_none(given), "isAdmin": admin})
        token = self._issue(name, {"name": "tests", "role": "write"})
        return User(name=name, email=email, token=token)

    def organization(
        self,
        name: str,
        *,
        owner: User | None = None,
        plan: str = "free",
        members: Mapping[str, Sequence[User]] | None = None,
    ) -> Organization:
        """Create an organization; `members` are users by their role (read, write, …)."""
        self._manage("POST", "organizations", {"name": name, "plan": plan})
        roles = {role: list(users) for role, users in (members or {}).items()}
        if owner is not None:
            roles["admin"] = [owner, *roles.get("admin", [])]
        for role, users in roles.items():
            for user in users:
                path = f"organizations/{name}/members/{user.name}"
                self._manage("PUT", path, {"role": role})
        return Organization(name=name, plan=plan)

    def token(
        self,
        user: User,
        *,
        role: str | None = None,
        scopes: Sequence[str] | None = None,
        value: str | None = None,
        expires_at: datetime | None = None,
    ) -> str:
        """Issue a token: read, write, or with scopes. A `value` of your own is imported as it is."""
        given = {
            "name": "tests",
            "role": role or ("read" if scopes is None else "fineGrained"),
            "scopes": None if scopes is None else list(scopes),
            "value": value,
            "expiresAt": None if expires_at is None else expires_at.isoformat(),
        }
        return self._issue(user.name, _without_none(given))

    def login(self, user: User, *, token: str | None = None) -> str:
        """Log a user in until the end of the test: `huggingface_hub` acts as them, without a token.

        Return the token in use: the user's own, unless another one is given.
        """
        endpoint = clients_endpoint()
        if endpoint not in {None, self.url}:
            raise CannotLogIn(
                f"huggingface_hub talks to {endpoint} in this process, and not to {self.url}: give "
                "it endpoint=hub.url and token=user.token."
            )
        self._login.put("HF_ENDPOINT", self.url)
        self._login.put("HF_TOKEN", token or user.token)
        return token or user.token

    def logout(self) -> None:
        """Make `huggingface_hub` anonymous again, as it is before each test."""
        self._login.restore()

    def oauth_app(
        self,
        name: str,
        *,
        owner: User | None = None,
        redirect_uris: Sequence[str] = (),
        scopes: Sequence[str] = ("openid", "profile"),
    ) -> OAuthApp:
        """Register an app with a secret, to which people can be sent to sign in with the hub."""
        url, token = f"{self.url}/api/settings/oauth-apps", (owner or self.admin).token
        body = {"name": name, "redirectUris": list(redirect_uris), "scopes": list(scopes)}
        client_id = call_hub("POST", url, token=token, body=body)["clientId"]
        secret = call_hub("POST", f"{url}/{client_id}/secrets", token=token, body={})["value"]
        return OAuthApp(client_id=client_id, secret=secret)

    def browser(self, user: User) -> Browser:
        """Return a browser in which this user can sign in, and press Allow for an app."""
        self._manage("PUT", f"users/{user.name}/password", {"password": _PASSWORD})
        return Browser(self.url, name=user.name, password=_PASSWORD)

    def inbox(self, user: User, **filters: str) -> list[dict[str, Any]]:
        """Return a user's notifications, newest first, once all events have been handled."""
        self.settle()
        query = {"limit": 100, **filters}
        page = call_hub("GET", f"{self.url}/api/notifications", token=user.token, query=query)
        notifications: list[dict[str, Any]] = page["notifications"]
        return notifications

    def mails(self, user: User) -> list[EmailMessage]:
        """Return the mails to a user, oldest first, once all that are due have been sent."""
        self.settle()
        mails = map(_mail, sorted((self._process.data_dir / "mail").glob("*.eml")))
        return [mail for mail in mails if user.email in str(mail["To"])]

    def fail_next(
        self,
        status: int,
        *,
        times: int = 1,
        path: str | None = None,
        method: str | None = None,
        retry_after: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Let the next requests fail with this status; `*` in a path matches anything."""
        added = {} if retry_after is None else {"Retry-After": str(retry_after)}
        self._add_fault(
            {"status": status, "times": times, "path": path, "method": method}
            | {"headers": {**added, **(headers or {})}}
        )

    def slow_next(
        self, seconds: float, *, times: int = 1, path: str | None = None, method: str | None = None
    ) -> None:
        """Delay the next requests by this time before they are handled."""
        self._add_fault({"delaySeconds": seconds, "times": times, "path": path, "method": method})

    def settle(self, *, timeout: float = 30.0) -> None:
        """Wait until the hub has done all that is due: deliveries, notifications, mails."""
        self._process.command("settle", seconds=timeout)

    def reset(self) -> None:
        """Replace it with an unused hub, as happens before each test."""
        self._process.reset()

    @property
    def data_dir(self) -> Path:
        """The data folder of the hub as it is now; the next reset brings another."""
        return self._process.data_dir

    @property
    def log(self) -> str:
        """All that the hub has written to its log since it started."""
        return self._process.log()

    def _add_fault(self, fault: Mapping[str, object]) -> None:
        call_hub("POST", f"{self.url}/api/test-mode/faults", body=fault)

    def _issue(self, name: str, given: Mapping[str, object]) -> str:
        value: str = self._manage("POST", f"users/{name}/tokens", given)["value"]
        return value

    def _manage(self, method: str, path: str, body: Mapping[str, object]) -> Any:
        url = f"{self.url}/api/admin/{path}"
        return call_hub(method, url, token=self._process.admin_token, body=body)


def _without_none(given: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in given.items() if value is not None}


def _mail(path: Path) -> EmailMessage:
    parsed = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    assert isinstance(parsed, EmailMessage)  # noqa: S101 - what that policy makes
    return parsed


@contextmanager
def running_hub(
    settings: Mapping[str, object] | None = None, *, database_url: str | None = None
) -> Iterator[Hub]:
    """Run a hub in a process of its own, with settings by their keys in the settings file.

    `database_url` names a PostgreSQL server by any database on it; the hub creates a database of
    its own there, and drops it in the end.
    """
    process = HubProcess(Port())
    hub = Hub(process)
    try:
        process.start(settings or {}, database_url=database_url)
        yield hub
    finally:
        hub.logout()
        process.stop()
