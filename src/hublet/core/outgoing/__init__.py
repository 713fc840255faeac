"""Calls to strangers: the one guarded client for webhooks, client documents and logos."""

from hublet.core.outgoing.client import OutgoingClient
from hublet.core.outgoing.networks import Policy, Tier, Verdict, classify
from hublet.core.outgoing.records import Answer, Outgoing, Reason, Timings
from hublet.core.outgoing.targets import TargetRefused, check_target

__all__ = [
    "Answer",
    "Outgoing",
    "OutgoingClient",
    "Policy",
    "Reason",
    "TargetRefused",
    "Tier",
    "Timings",
    "Verdict",
    "check_target",
    "classify",
]
