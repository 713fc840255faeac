"""Who may know of a repository, as a request says it."""

from hublet.repos.errors import InvalidRepo
from hublet.repos.records import RepoType, Visibility


def asked_visibility(*, visibility: str | None, private: bool | None) -> Visibility | None:
    """Return what a body asks for with either of two fields; None when it has neither."""
    if visibility is None:
        return None if private is None else _from_flag(private=private)
    asked = Visibility(visibility)
    if private is not None and private is (asked is Visibility.public):
        raise InvalidRepo("private and visibility contradict each other.")
    return asked


def _from_flag(*, private: bool) -> Visibility:
    return Visibility.private if private else Visibility.public


def check_visibility(type: RepoType, visibility: Visibility) -> None:  # noqa: A002 - as elsewhere
    if visibility is Visibility.protected and type is not RepoType.space:
        raise InvalidRepo("visibility protected is for spaces only.")
