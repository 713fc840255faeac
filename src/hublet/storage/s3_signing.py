"""Presigned addresses of S3: a request that whoever has the address may make for a while (SigV4).

A presigned address is a credential: never log it.
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from urllib.parse import quote, urlencode, urlsplit

from hublet.core import clock
from hublet.core.dataclasses import dataclass

_ALGORITHM = "AWS4-HMAC-SHA256"
_UNRESERVED = "-_.~"


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Credentials:
    access_key: str
    secret_key: str
    # Only of credentials that end after a while.
    session_token: str | None = None

    def __repr__(self) -> str:
        return f"S3Credentials(access_key={self.access_key[:4]!r}…)"


def presign(  # noqa: PLR0913 - what the signature is of, each under its name
    method: str,
    url: str,
    credentials: S3Credentials,
    *,
    region: str,
    life: timedelta,
    query: Mapping[str, str] | None = None,
    at: datetime | None = None,
) -> str:
    """Return the address, with these parameters, at which the one request may be made."""
    # The server knows the real time, which test mode does not move.
    moment = clock.now() - clock.offset() if at is None else at
    day, second = moment.strftime("%Y%m%d"), moment.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{day}/{region}/s3/aws4_request"
    parameters = {
        **(query or {}),
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{credentials.access_key}/{scope}",
        "X-Amz-Date": second,
        "X-Amz-Expires": str(life // timedelta(seconds=1)),
        "X-Amz-SignedHeaders": "host",
    }
    if credentials.session_token is not None:
        parameters["X-Amz-Security-Token"] = credentials.session_token
    text = urlencode(sorted(parameters.items()), safe=_UNRESERVED, quote_via=quote)
    parts = urlsplit(url)
    request = "\n".join(
        (method, parts.path, text, f"host:{parts.netloc}", "", "host", "UNSIGNED-PAYLOAD")
    )
    digest = hashlib.sha256(request.encode()).hexdigest()
    to_sign = f"{_ALGORITHM}\n{second}\n{scope}\n{digest}"
    key = _key(credentials.secret_key, day, region)
    signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    return f"{url}?{text}&X-Amz-Signature={signature}"


def _key(secret: str, day: str, region: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key
