"""Location of a bucket, as `storage.url` says it, and the credentials that the machine has for it."""

import configparser
from collections.abc import Mapping
from pathlib import Path
from typing import Self
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from hublet.core.config import aws_environment
from hublet.core.dataclasses import dataclass
from hublet.core.startup import CannotStart
from hublet.storage.s3_signing import S3Credentials

_OPTIONS = ("endpoint", "region", "style")
_STYLES = ("path", "virtual")
_ROLES = {
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
}
_DEFAULT_REGION = "us-east-1"


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
