"""Location of a bucket, as `storage.url` says it, the credentials that the machine has for it, and presigned
addresses: a request that whoever has the address may make for a while (SigV4).

A presigned address is a credential: never log it.
"""

import configparser
import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Self
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from hublet.core import clock
from hublet.core.config import aws_environment
from hublet.core.dataclasses import dataclass
from hublet.core.startup import CannotStart

_OPTIONS = ("endpoint", "region", "style")
_STYLES = ("path", "virtual")
_ROLES = {
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
}
_DEFAULT_REGION = "us-east-1"
_ALGORITHM = "AWS4-HMAC-SHA256"
_UNRESERVED = "-_.~"


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Location:
    bucket: str
    # Without slashes around it.
    prefix: str
    endpoint: str
    region: str
    # The bucket is part of the host, not of the path.
    is_virtual_hosted: bool

    @classmethod
    def parse(cls, url: str, variables: Mapping[str, str] | None = None) -> Self:
        """Read `s3://bucket/prefix?endpoint=…&region=…&style=…`. Raises CannotStart."""
        variables = aws_environment() if variables is None else variables
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        _check_options(options)
        region = options.get("region") or variables.get("AWS_REGION")
        region = region or variables.get("AWS_DEFAULT_REGION") or _DEFAULT_REGION
        endpoint = options.get("endpoint") or variables.get("AWS_ENDPOINT_URL_S3")
        endpoint = endpoint or variables.get("AWS_ENDPOINT_URL")
        endpoint = (endpoint or f"https://s3.{region}.amazonaws.com").rstrip("/")
        return cls(
            bucket=parts.netloc,
            prefix=unquote(parts.path).strip("/"),
            endpoint=endpoint,
            region=region,
            is_virtual_hosted=options.get("style") == "virtual",
        )

    @property
    def bucket_url(self) -> str:
        """Return the address below which the objects of the bucket lie."""
        if not self.is_virtual_hosted:
            return f"{self.endpoint}/{self.bucket}"
        parts = urlsplit(self.endpoint)
        return f"{parts.scheme}://{self.bucket}.{parts.netloc}"

    def object_url(self, path: str) -> str:
        whole = f"{self.prefix}/{path}" if self.prefix else path
        return f"{self.bucket_url}/{quote(whole, safe='/~')}"


def _check_options(options: Mapping[str, str]) -> None:
    for name in options:
        if name not in _OPTIONS:
            raise CannotStart(
                f"storage.url: the parameter {name} is not known; {', '.join(_OPTIONS)} are."
            )
    if options.get("style", "path") not in _STYLES:
        raise CannotStart(f"storage.url: style must be {' or '.join(_STYLES)}.")
    endpoint = urlsplit(options.get("endpoint", "https://host"))
    if endpoint.scheme not in {"http", "https"} or not endpoint.netloc:
        raise CannotStart("storage.url: endpoint must be an http:// or https:// address.")


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Credentials:
    access_key: str
    secret_key: str
    # Only of credentials that end after a while.
    session_token: str | None = None

    def __repr__(self) -> str:
        return f"S3Credentials(access_key={self.access_key[:4]!r}…)"


def find_credentials(
    variables: Mapping[str, str] | None = None, *, home: Path | None = None
) -> S3Credentials | None:
    """Return the credentials of the environment, or of the usual file; None without such.

    Then the machine may have a role, which the library asks for by itself. Raises CannotStart.
    """
    variables = aws_environment() if variables is None else variables
    if "AWS_ACCESS_KEY_ID" in variables and "AWS_PROFILE" not in variables:
        return _credentials(
            {name.lower(): value for name, value in variables.items()}, "the environment"
        )
    if _ROLES & set(variables):
        return None
    default = (home or Path.home()) / ".aws" / "credentials"
    path = Path(variables.get("AWS_SHARED_CREDENTIALS_FILE", default))
    profile = variables.get("AWS_PROFILE", "default")
    return _from_file(path, profile, is_named="AWS_PROFILE" in variables)


def _from_file(path: Path, profile: str, *, is_named: bool) -> S3Credentials | None:
    file = configparser.ConfigParser(interpolation=None)
    try:
        file.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError, OSError) as error:
        # Its text could show what stands in the file.
        raise CannotStart(f"{path} cannot be read as a file of credentials.") from error
    if not file.has_section(profile):
        if is_named:
            raise CannotStart(f"{path} has no profile {profile}: correct AWS_PROFILE.")
        return None
    return _credentials(dict(file[profile]), f"the profile {profile} of {path}")


def _credentials(values: Mapping[str, str], source: str) -> S3Credentials:
    access_key, secret_key = values.get("aws_access_key_id"), values.get("aws_secret_access_key")
    if not access_key or not secret_key:
        raise CannotStart(
            f"The object storage needs aws_access_key_id and aws_secret_access_key; {source} has "
            "only one of them."
        )
    token = values.get("aws_session_token") or None
    return S3Credentials(access_key=access_key, secret_key=secret_key, session_token=token)


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
