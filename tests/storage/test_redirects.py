"""Which downloads are redirected to the bucket: large ones, whole as their repository sees them."""

from pathlib import Path
from typing import Any

import pytest

from hublet.core.config import load
from hublet.storage.contents import LARGEST_STREAMED, download_address
from hublet.storage.records import Content

BUCKET = "s3://bucket/hub?endpoint=https://s3.example.com"
SHA256 = "a" * 64
LARGE = {"sha256": SHA256, "size": LARGEST_STREAMED + 1}


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")


def address(folder: Path, content: dict[str, Any], **settings: Any) -> str | None:
    chosen = {"storage.url": BUCKET, "database.data_dir": folder, **settings}
    return download_address(load(chosen, {}), Content(**content), media_type="image/png")


def test_a_large_content_has_an_address_in_the_bucket(tmp_path: Path) -> None:
    found = address(tmp_path, LARGE)

    assert found is not None
    assert found.startswith(f"https://s3.example.com/bucket/hub/blobs/{SHA256}?")
    assert "response-content-type=image%2Fpng" in found
    assert "secret" not in found


@pytest.mark.parametrize(
    ("content", "settings"),
    [
        pytest.param(LARGE | {"size": LARGEST_STREAMED}, {}, id="what could lie in git"),
        pytest.param(LARGE | {"is_whole": False}, {}, id="what was cut"),
        pytest.param(LARGE | {"xet_hash": "b" * 64}, {}, id="what the repository has cut itself"),
        pytest.param(LARGE, {"storage.redirect": False}, id="where it is turned off"),
        pytest.param(LARGE, {"storage.url": None}, id="in the data folder"),
        pytest.param(LARGE, {"storage.url": "file:///srv/hub"}, id="in a shared folder"),
        pytest.param(
            LARGE, {"server.base_url": "https://s3.example.com"}, id="at the hub's own origin"
        ),
    ],
)
def test_the_hub_itself_sends(
    content: dict[str, Any], settings: dict[str, Any], tmp_path: Path
) -> None:
    assert address(tmp_path, content, **settings) is None
