"""Errors of search.

InvalidRequest
└── UnsupportedFilter  400
"""

from hublet.core.errors import InvalidRequest


class UnsupportedFilter(InvalidRequest):
    """A list that ignores a filter would be wrong."""

    def __init__(self, name: str, value: str) -> None:
        super().__init__(f"{name}: this hub cannot filter by {value}.")
