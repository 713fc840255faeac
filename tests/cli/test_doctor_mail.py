"""What the doctor says of the way that mails go."""

import asyncio
from dataclasses import replace
from pathlib import Path

from hublet.cli.doctor import mail
from hublet.cli.doctor.findings import ok, problem
from hublet.core.config import Settings, load
from mail_servers import mail_server


def with_server(url: str) -> Settings:
    settings = Settings()
    return replace(settings, mail=replace(settings.mail, smtp_url=url))


async def test_without_a_server_mails_are_files(tmp_path: Path) -> None:
    finding = await mail.check(load({"database.data_dir": tmp_path}, {}))

    assert finding == ok("mail", f"No mail server is set; mails are files in {tmp_path}/mail.")
    assert await asyncio.to_thread(lambda: list(tmp_path.iterdir())) == []


async def test_a_server_that_lets_us_in_is_well() -> None:
    async with mail_server(login=True) as server:
        finding = await mail.check(with_server(server.url(login="hublet:p%40ss%2Fword@")))

    assert finding == ok(
        "mail",
        f"smtp://127.0.0.1:{server.port} takes mails from Hublet <hublet@localhost>.",
    )
    assert server.envelopes == []


async def test_a_server_that_refuses_the_login_is_a_problem_and_the_password_stays_untold() -> None:
    async with mail_server(login=True) as server:
        finding = await mail.check(with_server(server.url(login="hublet:wrong@")))

    assert finding == problem(
        "mail",
        f"smtp://127.0.0.1:{server.port} cannot be used: The mail server refused the login (535).",
        "Correct mail.smtp_url or the server; mails wait for three days.",
    )
