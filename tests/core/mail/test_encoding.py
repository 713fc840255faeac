"""Letters as mails: whatever people wrote, it stays where it belongs."""

import gc
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hublet.core.mail import MailMessage
from hublet.core.mail.encoding import encode
from hublet.core.mail.headers import one_line
from mail_servers import parsed, texts_of

EVIL = "Hi\r\nBcc: eve@example.com\r\n\r\nbody"


def a_letter(**changes: Any) -> MailMessage:
    values: dict[str, Any] = {
        "sender": "Hublet <hublet@hub.test>",
        "recipient": "ada@example.com",
        "subject": "Hello",
        "text": "Hello, Ada.\n",
        "message_id": "<1@hub.test>",
        "sent_at": datetime(2026, 11, 15, 1, 44, 56, tzinfo=UTC),
    }
    return MailMessage(**(values | changes))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("Hello", "Hello", id="a plain line"),
        pytest.param(" a \t b ", "a b", id="blanks"),
        pytest.param(EVIL, "Hi Bcc: eve@example.com body", id="line breaks"),
        pytest.param("a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g", "a b c d e f g", id="other breaks"),
        pytest.param("a\x00b\x07c\x7fd", "a b c d", id="control characters"),
        pytest.param("a\u202eb\ud800c", "a b c", id="what turns the text around, and half pairs"),
        pytest.param("Grüße 🚀", "Grüße 🚀", id="other letters"),
        pytest.param("x" * 250, "x" * 250, id="as long as may be"),
        pytest.param("x" * 251, "x" * 249 + "…", id="too long"),
    ],
)
def test_a_header_is_one_line(text: str, line: str) -> None:
    assert one_line(text) == line


def test_no_text_adds_a_header() -> None:
    content = encode(
        a_letter(sender=f"{EVIL} <hublet@hub.test>", recipient_name=EVIL, subject=EVIL, text=EVIL)
    )

    message = parsed(content)
    assert message.keys() == [
        "From", "To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type",
        "Content-Transfer-Encoding",
    ]  # fmt: skip
    assert message["Subject"] == "Hi Bcc: eve@example.com body"
    assert [each.addr_spec for each in message["To"].addresses] == ["ada@example.com"]


def test_a_header_of_ours_with_a_line_break_is_an_error() -> None:
    with pytest.raises(ValueError, match="one line of printable ASCII"):
        encode(a_letter(headers={"X-Test": "a\r\nBcc: eve@example.com"}))


def test_other_letters_are_encoded_in_ascii_and_come_back() -> None:
    content = encode(
        a_letter(
            sender="Höhle <hublet@hub.test>",
            recipient_name="Ada, „die Gräfin“ 🚀",
            subject="Grüße " * 30,
            text="Grüße\n",
            html="<p>Grüße</p>\n",
        )
    )

    assert content.isascii()
    assert max(map(len, content.split(b"\r\n"))) <= 78
    message = parsed(content)
    assert message["From"].addresses[0].display_name == "Höhle"
    assert message["To"].addresses[0].display_name == "Ada, „die Gräfin“ 🚀"
    assert message["Subject"] == ("Grüße " * 30).strip()
    assert texts_of(message) == ("Grüße\n", "<p>Grüße</p>\n")


def test_a_long_link_in_a_header_stays_in_one_piece() -> None:
    link = f"<https://hub.test/unsubscribe/{'x' * 300}>"

    content = encode(a_letter(headers={"List-Unsubscribe": link}))

    assert f"\r\nList-Unsubscribe: {link}\r\n".encode() in content


def test_text_that_nothing_can_store_does_not_stop_a_mail() -> None:
    message = parsed(encode(a_letter(text="a\x00b\ud800c\n.\nend\n")))

    assert message.get_content() == "ab?c\n.\nend\n"


# What could end a line or a part, or be taken for an escape.
TEXTS = st.text(st.sampled_from("aä🚀 .\t\r\n=_-\x00\x0b\u2028")) | st.text()


@given(text=TEXTS, html=TEXTS)
def test_whatever_is_written_comes_back(text: str, html: str) -> None:
    texts = [f"--=_part--\n{each}\n{'x =' * 50}" for each in (text, html)]

    content = encode(a_letter(text=texts[0], html=texts[1]))

    assert content.isascii()
    assert max(map(len, content.split(b"\r\n"))) <= 76
    assert b"\n" not in content.replace(b"\r\n", b"")
    assert texts_of(parsed(content)) == tuple(map(as_stored, texts))


def as_stored(text: str) -> str:
    lines = text.replace("\x00", "").encode(errors="replace").splitlines()
    return "".join(f"{line.decode()}\n" for line in lines)


def test_a_mail_leaves_nothing_for_the_garbage_collection() -> None:
    letter = a_letter(html="<p>Hello</p>\n")
    encode(letter)
    gc.collect()
    gc.disable()
    try:
        encode(letter)
        assert gc.collect() == 0
    finally:
        gc.enable()
