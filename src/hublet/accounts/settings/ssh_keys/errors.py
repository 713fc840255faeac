"""What can be wrong with a change of one's own SSH keys."""

from hublet.core.errors import Conflict, InvalidRequest, NotFound


class SshKeyNotFound(NotFound):
    def __init__(self, key_id: str) -> None:
        super().__init__(f"There is no SSH key {key_id} of yours.")


class SshKeyTaken(Conflict):
    def __init__(self, fingerprint: str) -> None:
        super().__init__(f"The SSH key {fingerprint} belongs to an account already.")


class TooManySshKeys(InvalidRequest):
    def __init__(self, limit: int) -> None:
        super().__init__(f"An account has at most {limit} SSH keys.")
