"""Mails as files."""

import stat
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hublet.core.config import Settings, load
from hublet.core.mail import (
    MailMessage,
    MailTransport,
    MailUnavailable,
    mail_domain,
    open_transport,
)
from mail_servers import parsed


def a_letter(**changes: Any) -> MailMessage:
    values: dict[str, Any] = {
        "sender": "hublet@hub.test",
        "recipient": "ada@example.com",
        "subject": "Hello",
        "text": "Hello, Ada.\n",
        "message_id": "<1@hub.test>",
        "sent_at": datetime(2026, 11, 15, 1, 44, 56, tzinfo=UTC),
    }
    return MailMessage(**(values | changes))


def the_post(folder: Path) -> MailTransport:
    settings = Settings()
    return open_transport(replace(settings, database=replace(settings.database, data_dir=folder)))


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "mail").iterdir())


async def test_without_a_server_mails_are_files_that_only_their_owner_reads(tmp_path: Path) -> None:
    async with the_post(tmp_path) as post:
        await post.send(a_letter())

    assert files(tmp_path) == ["1.eml"]
    file = tmp_path / "mail" / "1.eml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert parsed(file.read_bytes()).get_content() == "Hello, Ada.\n"


async def test_a_letter_that_comes_twice_lies_there_once(tmp_path: Path) -> None:
    async with the_post(tmp_path) as post:
        await post.send(a_letter())
        await post.send(a_letter(text="Again.\n"))
        await post.send(a_letter(message_id="<2@hub.test>"))

    assert files(tmp_path) == ["1.eml", "2.eml"]
    assert parsed((tmp_path / "mail" / "1.eml").read_bytes()).get_content() == "Again.\n"


async def test_no_message_id_leads_out_of_the_folder(tmp_path: Path) -> None:
    async with the_post(tmp_path) as post:
        await post.send(a_letter(message_id="<../../a/b@hub.test>"))

    assert files(tmp_path) == ["_.._a_b.eml"]


async def test_a_folder_that_cannot_be_written_is_tried_again_later(tmp_path: Path) -> None:
    (tmp_path / "mail").write_text("a file in its place")

    async with the_post(tmp_path) as post:
        with pytest.raises(MailUnavailable) as refused:
            await post.send(a_letter())
        with pytest.raises(MailUnavailable):
            await post.check()

    assert str(refused.value) == "The folder for mails cannot be written (File exists)."


async def test_a_check_writes_nothing(tmp_path: Path) -> None:
    async with the_post(tmp_path) as post:
        await post.check()

    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("base_url", "domain"),
    [
        pytest.param("https://hub.example.com:8443", "hub.example.com", id="a name"),
        pytest.param("http://127.0.0.1:8000", "127.0.0.1", id="an address"),
        pytest.param("http://[::1]:8000", "[IPv6:::1]", id="an address of the new protocol"),
    ],
)
def test_the_domain_is_that_of_the_base_url(base_url: str, domain: str) -> None:
    assert mail_domain(load({"server.base_url": base_url}, {})) == domain
