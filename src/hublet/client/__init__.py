"""Client of a hub's API on the standard library alone, so that commands start fast."""

from hublet.client.errors import (
    ClientError,
    InvalidEndpoint,
    NotReachable,
    NotUnderstood,
    Refused,
)
from hublet.client.events import Event, follow
from hublet.client.hub import Hub, path_of, read_endpoint

__all__ = [
    "ClientError",
    "Event",
    "Hub",
    "InvalidEndpoint",
    "NotReachable",
    "NotUnderstood",
    "Refused",
    "follow",
    "path_of",
    "read_endpoint",
]
