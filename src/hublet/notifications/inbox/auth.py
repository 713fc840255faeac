"""What a request asks of the inbox, as types that a route names."""

from typing import Annotated

from fastapi import Query
from pydantic import ValidationError
from starlette.requests import Request

from hublet.core.errors import InvalidRequest
from hublet.core.http.validation import sentences
from hublet.notifications.inbox.schemas import ChangeFilters, Filters

AskedFilters = Annotated[Filters, Query()]
AskedChange = Annotated[ChangeFilters, Query()]


async def show_filters(_shown: AskedFilters) -> None:
    """Show the filters in the description of a hot route, which reads them by `filters_of`."""


def filters_of(request: Request) -> Filters:
    """Read the filters without the framework, refusing what it would refuse in its words."""
    try:
        return Filters.model_validate(dict(request.query_params))
    except ValidationError as error:
        told = [{**each, "loc": ("query", *each["loc"])} for each in error.errors()]
        raise InvalidRequest(sentences(told)) from None
