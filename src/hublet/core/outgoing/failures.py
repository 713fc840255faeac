"""Sentences for the owner of a target that explain why a call failed.

A sentence names the host of the URL and never an address that it resolved to, nor what a target
that was refused would have answered.
"""

import ssl
from errno import ECONNREFUSED

from hublet.core.outgoing.dialer import AddressBlocked, NameNotFound
from hublet.core.outgoing.records import FailureReason
from hublet.core.outgoing.timings import StageTimes
from hublet.core.outgoing.urls import Destination

Failure = tuple[FailureReason, str]


def explain_dial(error: BaseException | None, target: Destination) -> Failure:
    """Explain why no connection was made."""
    where = f"{target.host}:{target.port}"
    match error:
        case AddressBlocked():
            blocked = f"{target.host} leads to an address that this hub does not call."
            return FailureReason.blocked_target, blocked
        case NameNotFound():
            return FailureReason.dns_failed, f"The name {target.host} could not be looked up."
        case ssl.SSLCertVerificationError(verify_message=why):
            return (
                FailureReason.tls_failed,
                f"The certificate of {target.host} is not trusted: {why}.",
            )
        case ssl.SSLError():
            return FailureReason.tls_failed, f"{where} does not speak TLS as this hub does."
        case OSError(errno=code) if code == ECONNREFUSED:
            return FailureReason.connection_refused, f"{where} refused the connection."
        case _:
            return FailureReason.connection_failed, f"No connection to {where} could be made."


def explain_loss(target: Destination, times: StageTimes) -> Failure:
    moment = "it answered" if times.answered is None else "its answer was complete"
    return FailureReason.connection_lost, f"{target.host} closed the connection before {moment}."


def explain_invalid(target: Destination) -> Failure:
    return FailureReason.bad_answer, f"The answer of {target.host} is not valid HTTP."


def explain_timeout(target: Destination, times: StageTimes, seconds: float) -> Failure:
    if times.answered is not None:
        doing = f"{target.host} did not finish its answer"
    elif times.connected is not None:
        doing = f"{target.host} did not answer"
    elif times.dialled is not None:
        doing = f"No connection to {target.host}:{target.port} could be made"
    else:
        doing = f"{target.host} could not be reached"
    return FailureReason.timeout, f"{doing} within {seconds:g} seconds."
