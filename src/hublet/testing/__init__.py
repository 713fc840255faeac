"""Pytest plugin that runs a real hub inside tests.

`hub` and `receiver` are fixtures; see docs/testing.md. Outside of pytest, `running_hub` is a
context manager that gives the same `Hub`.
"""

from hublet.testing.browser import Browser, Page
from hublet.testing.errors import (
    CannotLogIn,
    CannotStart,
    HubletTestingError,
    Refused,
    WaitedInVain,
)
from hublet.testing.hub import Clock, Hub, OAuthApp, Organization, User, running_hub
from hublet.testing.process import HubProcess, Port
from hublet.testing.webhooks import Delivery, Received, Receiver, Webhooks, receiving

__all__ = [
    "Browser",
    "CannotLogIn",
    "CannotStart",
    "Clock",
    "Delivery",
    "Hub",
    "HubProcess",
    "HubletTestingError",
    "OAuthApp",
    "Organization",
    "Page",
    "Port",
    "Received",
    "Receiver",
    "Refused",
    "User",
    "WaitedInVain",
    "Webhooks",
    "receiving",
    "running_hub",
]
