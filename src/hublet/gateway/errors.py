"""Errors of the gateway: what the host of a job's port answers where the job does not."""

from hublet.core.errors import AuthenticationNeeded, HubError, InvalidRequest, NotFound, Unavailable


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
