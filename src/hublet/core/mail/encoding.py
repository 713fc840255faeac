"""Encoding of a mail message as MIME, safe for any text. Loaded late: `email` takes 30 ms."""

from email import policy
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr

from hublet.core.mail.headers import address_header, header, text_header
from hublet.core.mail.message import MailMessage

# It keeps lines short, whatever a text holds: servers end them after 998 bytes.
_ENCODING = "quoted-printable"


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
    mime = EmailMessage(policy=policy.SMTP)
    mime.set_content(_storable(message.text), cte=_ENCODING)
    if message.html is not None:
        mime.add_alternative(_storable(message.html), subtype="html", cte=_ENCODING)
    return mime.as_bytes()


def sender_address(message: MailMessage) -> str:
    return parseaddr(message.sender)[1]


def _storable(text: str) -> str:
    return text.replace("\x00", "").encode(errors="replace").decode()
