"""Which properties a request asks for, as types that a route names."""

from typing import Annotated

from fastapi import Depends, Query

from hublet.repos.information.properties import IN_DETAIL, IN_LISTS, Property
from hublet.repos.information.service import Asked

_EXPAND = Query(description="Show only these properties, beside the ids; can be repeated.")
_EXPAND_ARRAY = Query(alias="expand[]", description="The same as `expand`.")
_BLOBS = Query(description="With the size and the digest of each file.")
_SECURITY = Query(alias="securityStatus", description="With the state of scans: there are none.")


async def _expanded(
    expand: Annotated[list[Property] | None, _EXPAND] = None,
    expand_array: Annotated[list[Property] | None, _EXPAND_ARRAY] = None,
) -> frozenset[Property]:
    return frozenset([*(expand or ()), *(expand_array or ())])


# Empty when the request leaves the choice to us.
_Expanded = Annotated[frozenset[Property], Depends(_expanded)]


async def _asked(
    expanded: _Expanded,
    *,
    blobs: Annotated[bool, _BLOBS] = False,
    security: Annotated[bool, _SECURITY] = False,
) -> Asked:
    return Asked(shown=expanded or IN_DETAIL, with_blobs=blobs, with_security=security)


AskedInfo = Annotated[Asked, Depends(_asked)]


async def _shown_in_list(
    expanded: _Expanded,
    *,
    full: bool = False,
    card_data: Annotated[bool, Query(alias="cardData")] = False,
) -> frozenset[Property]:
    usual = IN_LISTS | {Property.card_data} if full or card_data else IN_LISTS
    return expanded or usual


ShownInList = Annotated[frozenset[Property], Depends(_shown_in_list)]
