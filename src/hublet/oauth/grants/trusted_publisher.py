"""Trusted publisher grant, keyless CI (interface 5.5): a CI provider's ID token for a token of the
hub.
"""

from hublet.oauth.errors import OAuthError
from hublet.oauth.grants.context import GrantContext, GrantResult, TokenRequest

SUBJECT_TYPE = "urn:ietf:params:oauth:token-type:id_token"


async def redeem(_desk: GrantContext, request: TokenRequest) -> GrantResult:
    """Refuse: no repository has a trusted publisher yet.

    This is the seam. What is missing is a look-up of the publishers of `resource`, and the
    check of the `subject_token` against the keys of the one that issued it.
    """
    for name in ("subject_token", "resource"):
        request.get(name)
    raise OAuthError("invalid_grant", "Trusted publishers are not configured on this hub.")
