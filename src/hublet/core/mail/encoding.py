"""Encoding of a mail message as MIME, safe for any text. Loaded late: `email` takes 30 ms."""

from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import parseaddr
from typing import Any

from hublet.core.mail.message import MailMessage, one_line

# It keeps lines short, whatever a text holds: servers end them after 998 bytes.
_ENCODING = "quoted-printable"
# What people wrote, or Python; every other header is ASCII of our own.
_FOLDED = frozenset({"from", "to", "subject", "content-type"})


class _Policy(EmailPolicy):
    """Python would encode a long link in a header, and no mail program would follow it."""

    def fold(self, name: str, value: Any) -> str:
        if name.lower() in _FOLDED or not isinstance(value, str):
            folded: str = super().fold(name, value)
            return folded
        return f"{name}: {value}{self.linesep}"

    def fold_binary(self, name: str, value: Any) -> bytes:
        return self.fold(name, value).encode("ascii", "surrogateescape")


_POLICY = _Policy(linesep="\r\n")


def encode(message: MailMessage) -> bytes:
    mime = EmailMessage(policy=_POLICY)
    name, address = parseaddr(message.sender)
    mime["From"] = _address(name, address)
    mime["To"] = _address(message.recipient_name, message.recipient)
    mime["Subject"] = one_line(message.subject)
    mime["Date"] = message.sent_at
    mime["Message-ID"] = message.message_id
    # Python refuses a value that holds a line break.
    for header, value in message.headers.items():
        mime[header] = value
    mime.set_content(_storable(message.text), cte=_ENCODING)
    if message.html is not None:
        mime.add_alternative(_storable(message.html), subtype="html", cte=_ENCODING)
    return mime.as_bytes()


def sender_address(message: MailMessage) -> str:
    return parseaddr(message.sender)[1]


def _address(name: str, address: str) -> Address:
    return Address(display_name=one_line(name), addr_spec=address)


def _storable(text: str) -> str:
    return text.replace("\x00", "").encode(errors="replace").decode()
