"""Where a bucket is, who may use it, and addresses that are signed for it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hublet.core.startup import CannotStart
from hublet.storage.s3_location import S3Credentials, S3Location, find_credentials, presign

KEYS = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret"}
FILE = """
[default]
aws_access_key_id = D
aws_secret_access_key = d%d

[other]
aws_access_key_id = O
aws_secret_access_key = o
aws_session_token = t

[half]
aws_access_key_id = H
"""


@pytest.mark.parametrize(
    ("url", "variables", "address"),
    [
        pytest.param(
            "s3://b/a/c", {}, "https://s3.us-east-1.amazonaws.com/b/a/c/blobs/1", id="of AWS"
        ),
        pytest.param(
            "s3://b?region=eu-1&style=virtual",
            {},
            "https://b.s3.eu-1.amazonaws.com/blobs/1",
            id="with the bucket in the host",
        ),
        pytest.param(
            "s3://b/x%20y?endpoint=http://10.0.0.1:8333/",
            {},
            "http://10.0.0.1:8333/b/x%20y/blobs/1",
            id="of a server of one's own",
        ),
        pytest.param(
            "s3://b",
            {"AWS_ENDPOINT_URL_S3": "https://minio", "AWS_REGION": "x"},
            "https://minio/b/blobs/1",
            id="of the environment",
        ),
    ],
)
def test_an_object_has_an_address(url: str, variables: dict[str, str], address: str) -> None:
    assert S3Location.parse(url, variables).object_url("blobs/1") == address


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("key=1", "the parameter key is not known; endpoint, region, style are"),
        ("style=host", "style must be path or virtual"),
        ("endpoint=minio:9000", "endpoint must be an http:// or https:// address"),
    ],
)
def test_a_parameter_that_is_wrong_is_told(query: str, sentence: str) -> None:
    with pytest.raises(CannotStart, match=sentence):
        S3Location.parse(f"s3://bucket?{query}", {})


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        pytest.param(KEYS, ("AKID", "secret", None), id="the environment"),
        pytest.param({}, ("D", "d%d", None), id="the file"),
        pytest.param({"AWS_PROFILE": "other"}, ("O", "o", "t"), id="a profile"),
        pytest.param(KEYS | {"AWS_PROFILE": "other"}, ("O", "o", "t"), id="a profile first"),
    ],
)
def test_credentials_are_found(
    variables: dict[str, str], found: tuple[str, str, str | None], tmp_path: Path
) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(FILE)

    credentials = find_credentials(variables, home=tmp_path)

    assert credentials is not None
    assert (credentials.access_key, credentials.secret_key, credentials.session_token) == found
    assert found[1] not in repr(credentials)


def test_without_credentials_the_machine_may_have_a_role(tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(FILE)
    web_identity = {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}

    assert find_credentials({}, home=tmp_path / "nobody") is None
    assert find_credentials(web_identity, home=tmp_path) is None


@pytest.mark.parametrize(
    ("profile", "sentence"), [("none", "has no profile none"), ("half", "has only one of them")]
)
def test_a_profile_that_is_wrong_is_told(profile: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(FILE)
    variables = {"AWS_SHARED_CREDENTIALS_FILE": str(file), "AWS_PROFILE": profile}

    with pytest.raises(CannotStart, match=sentence):
        find_credentials(variables)


def test_an_address_is_signed_as_the_documentation_of_s3_has_it() -> None:
    address = presign(
        "GET",
        "https://examplebucket.s3.amazonaws.com/test.txt",
        S3Credentials(
            access_key="AKIAIOSFODNN7EXAMPLE",
            secret_key="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        ),
        region="us-east-1",
        life=timedelta(days=1),
        at=datetime(2013, 5, 24, tzinfo=UTC),
    )

    assert address.endswith(
        "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    )
