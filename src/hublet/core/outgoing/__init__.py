"""Outgoing HTTP: the one guarded client for webhooks, client documents and logos."""

from hublet.core.outgoing.client import OutgoingClient
from hublet.core.outgoing.networks import AddressPolicy, AddressVerdict, Tier, classify
from hublet.core.outgoing.records import (
    FailureReason,
    OutgoingFailed,
    OutgoingRequest,
    OutgoingResponse,
    Timings,
)
from hublet.core.outgoing.urls import UrlRefused, check_url

__all__ = [
    "AddressPolicy",
    "AddressVerdict",
    "FailureReason",
    "OutgoingClient",
    "OutgoingFailed",
    "OutgoingRequest",
    "OutgoingResponse",
    "Tier",
    "Timings",
    "UrlRefused",
    "check_url",
    "classify",
]
