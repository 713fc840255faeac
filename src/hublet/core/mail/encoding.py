"""Encoding of a mail message as MIME, safe for any text. Loaded late: `email` takes 30 ms.

Python's own messages take forty times as long, and make a class for each header, which a server
that collects garbage rarely keeps for long.
"""

from binascii import b2a_qp
from email.utils import format_datetime, parseaddr

from hublet.core.mail.headers import address_header, header, text_header
from hublet.core.mail.message import MailMessage

# Quoted-printable text never holds `=_`, so none can end its part.
_BOUNDARY = b"=_part"


def encode(message: MailMessage) -> bytes:
    name, address = parseaddr(message.sender)
    headers = [
        address_header("From", name, address),
        address_header("To", message.recipient_name, message.recipient),
        text_header("Subject", message.subject),
        header("Date", format_datetime(message.sent_at)),
        header("Message-ID", message.message_id),
        *(header(name, value) for name, value in message.headers.items()),
    ]
    return b"".join(headers) + _content(message)


def _content(message: MailMessage) -> bytes:
    """Return the texts with the headers that describe them, and the empty line between."""
    version, text = b"MIME-Version: 1.0\r\n", _part("plain", message.text)
    if message.html is None:
        return version + text
    parts = [b"--%b\r\n%b\r\n" % (_BOUNDARY, each) for each in (text, _part("html", message.html))]
    kind = b'Content-Type: multipart/alternative; boundary="%b"\r\n\r\n' % _BOUNDARY
    return b"".join([version, kind, *parts, b"--%b--\r\n" % _BOUNDARY])


def _part(subtype: str, text: str) -> bytes:
    kind = f'Content-Type: text/{subtype}; charset="utf-8"\r\n'.encode()
    lines = text.replace("\x00", "").encode(errors="replace").splitlines()
    # It keeps lines short, whatever a text holds: servers end them after 998 bytes.
    encoded = b2a_qp(b"".join(line + b"\r\n" for line in lines))
    return kind + b"Content-Transfer-Encoding: quoted-printable\r\n\r\n" + encoded


def sender_address(message: MailMessage) -> str:
    return parseaddr(message.sender)[1]
