"""What went wrong, as a reason and a sentence for the owner of the target.

A sentence names the host of the URL and never an address that it resolved to, nor what a
target that was refused would have answered.
"""

import ssl
from errno import ECONNREFUSED

import aiohttp

from hublet.core.outgoing.dialling import AddressBlocked
from hublet.core.outgoing.journey import Journey
from hublet.core.outgoing.records import Reason
from hublet.core.outgoing.targets import Target


def explain(error: Exception, target: Target, journey: Journey) -> tuple[Reason, str]:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return Reason.tls_failed, _about_certificate(error.certificate_error, target)
    if isinstance(error, aiohttp.ClientConnectorError):
        return _about_connecting(error, target)
    if isinstance(error, aiohttp.InvalidURL):
        return Reason.blocked_target, "The URL is not one that this hub calls."
    if isinstance(error, aiohttp.ClientResponseError):
        return Reason.bad_answer, f"The answer of {target.host} is not valid HTTP."
    moment = "it answered" if journey.answered is None else "its answer was complete"
    return Reason.connection_lost, f"{target.host} closed the connection before {moment}."


def _about_connecting(error: aiohttp.ClientConnectorError, target: Target) -> tuple[Reason, str]:
    where = f"{target.host}:{target.port}"
    match error.os_error:
        case AddressBlocked():
            blocked = f"{target.host} leads to an address that this hub does not call."
            return Reason.blocked_target, blocked
        case _ if isinstance(error, aiohttp.ClientConnectorDNSError):
            return Reason.dns_failed, f"The name {target.host} could not be looked up."
        case _ if isinstance(error, aiohttp.ClientConnectorSSLError):
            return Reason.tls_failed, f"{where} does not speak TLS as this hub does."
        case OSError(errno=code) if code == ECONNREFUSED:
            return Reason.connection_refused, f"{where} refused the connection."
        case _:
            return Reason.connection_failed, f"No connection to {where} could be made."


def _about_certificate(error: Exception, target: Target) -> str:
    why = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else "not valid"
    return f"The certificate of {target.host} is not trusted: {why}."


def explain_timeout(target: Target, journey: Journey, seconds: float) -> str:
    if journey.answered is not None:
        doing = f"{target.host} did not finish its answer"
    elif journey.connected is not None:
        doing = f"{target.host} did not answer"
    elif journey.dialled is not None:
        doing = f"No connection to {target.host}:{target.port} could be made"
    else:
        doing = f"{target.host} could not be reached"
    return f"{doing} within {seconds:g} seconds."
