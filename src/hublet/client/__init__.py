"""A small client of a hub's own API: the standard library alone, so that commands start fast."""

from hublet.client.errors import (
    ClientError,
    InvalidEndpoint,
    NotReachable,
    NotUnderstood,
    Refused,
)
from hublet.client.events import Event
from hublet.client.hub import Hub, path_of, read_endpoint
from hublet.client.streaming import follow

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
