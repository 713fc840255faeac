"""Errors of the gateway: responses of a port's host where the job sends none, and signals inside.

HubError
├── NotFound
│   ├── NoSuchHost              the host names no port of a job
│   ├── PortNotExposed          the job does not expose the port
│   └── CodeExpired             the code for a browser was used, or is too old
├── AuthenticationNeeded
│   └── PortTokenNeeded         the port is not public
├── InvalidRequest
│   └── AmbiguousRequest        the job could read the request in another way than the hub
├── Unavailable
│   ├── JobNotStarted           the job is not running yet
│   └── MachineAway             the machine of the job does not answer this one
├── NotAllowed
│   └── TunnelDenied            the order of another machine is forged, too old or used
├── JobEnded                    410: the job is over
├── Unreachable                 502
│   ├── PortNotListening        nothing in the job listens on the port
│   ├── JobElsewhere            the job runs on another machine
│   ├── TunnelRefused           the machine of the job refused, and said why
│   ├── NetworkUnreachable      the hub cannot join the network of the job
│   └── BadResponse             the job sent no valid response
└── ProxyFailed                 500: a bug of the hub
Exception
├── NothingListens              becomes PortNotListening, or a refused SSH channel
├── CannotJoinNetwork           becomes NetworkUnreachable, or a refused SSH channel
├── ResponseLost                becomes BadResponse
│   └── NoResponse              before the first byte: the request may be sent again
├── ExchangeAborted             the response ends in the middle
└── ClientDisconnected          the client went away before the response
"""

from hublet.core.errors import (
    AuthenticationNeeded,
    HubError,
    InvalidRequest,
    NotAllowed,
    NotFound,
    Unavailable,
)


class NoSuchHost(NotFound):
    def __init__(self) -> None:
        super().__init__("There is nothing at this host: ports of jobs are at <job>--<port>.")


class PortTokenNeeded(AuthenticationNeeded):
    def __init__(self) -> None:
        super().__init__("This port of the job needs a token that reads what its owner has.")


class PortNotExposed(NotFound):
    def __init__(self, job_id: str, port: int) -> None:
        super().__init__(f"The job {job_id} does not expose port {port}.")


class JobNotStarted(Unavailable):
    def __init__(self, job_id: str) -> None:
        super().__init__(f"The job {job_id} has not begun yet: try again.")


class JobEnded(HubError):
    status = 410

    def __init__(self, job_id: str) -> None:
        super().__init__(f"The job {job_id} is over.")


class Unreachable(HubError):
    status = 502


class PortNotListening(Unreachable):
    def __init__(self, job_id: str, port: int) -> None:
        super().__init__(f"Nothing in the job {job_id} listens on port {port}.")


class MachineAway(Unavailable):
    def __init__(self, job_id: str, machine: str) -> None:
        super().__init__(
            f"The job {job_id} runs on the machine {machine}, which does not answer: try again."
        )


class TunnelDenied(NotAllowed):
    def __init__(self) -> None:
        super().__init__("This is for machines of this hub only.")


class TunnelRefused(Unreachable):
    """Has the sentence of the other machine."""


class JobElsewhere(Unreachable):
    def __init__(self, job_id: str) -> None:
        super().__init__(
            f"The job {job_id} is not running on the machine that answers here, or it has just "
            "ended: ports are reached through the hub's process on the machine of the job."
        )


class NetworkUnreachable(Unreachable):
    def __init__(self, job_id: str, reason: str) -> None:
        super().__init__(f"The hub cannot reach into the network of the job {job_id}: {reason}.")


class BadResponse(Unreachable):
    def __init__(self, job_id: str) -> None:
        super().__init__(f"The job {job_id} gave no answer that could be read.")


class AmbiguousRequest(InvalidRequest):
    def __init__(self, rule: str) -> None:
        super().__init__(f"The request cannot be passed on: {rule}.")


class CodeExpired(NotFound):
    def __init__(self) -> None:
        super().__init__("This link was used already, or is too old: open the port once more.")


class ProxyFailed(HubError):
    def __init__(self, request_id: str) -> None:
        super().__init__(
            f"Something went wrong on our side. Tell the operator the request id {request_id}."
        )


class NothingListens(Exception):
    """No process of the job accepts connections on the port."""


class CannotJoinNetwork(Exception):
    """The hub may not make sockets in the job's network; the text says why."""


class ResponseLost(Exception):
    """The job closed the connection or sent what is not HTTP, or the hub closed the connection."""


class NoResponse(ResponseLost):
    """The connection was closed before the first byte of a response, and not by the hub."""


class ExchangeAborted(Exception):
    """The job or the client disconnected after the response had begun."""


class ClientDisconnected(Exception):
    """Nobody waits for the response any more."""
