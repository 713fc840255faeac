"""Encoding of a mail message as MIME, safe for whatever text it holds. Loading it loads Python's
`email`.
"""

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


def encode(letter: MailMessage) -> bytes:
    message = EmailMessage(policy=_POLICY)
    name, address = parseaddr(letter.sender)
    message["From"] = _address(name, address)
    message["To"] = _address(letter.recipient_name, letter.recipient)
    message["Subject"] = one_line(letter.subject)
    message["Date"] = letter.sent_at
    message["Message-ID"] = letter.message_id
    # Python refuses a value that holds a line break.
    for header, value in letter.headers.items():
        message[header] = value
    message.set_content(_storable(letter.text), cte=_ENCODING)
    if letter.html is not None:
        message.add_alternative(_storable(letter.html), subtype="html", cte=_ENCODING)
    return message.as_bytes()


def sender_address(letter: MailMessage) -> str:
    return parseaddr(letter.sender)[1]


def _address(name: str, address: str) -> Address:
    return Address(display_name=one_line(name), addr_spec=address)


def _storable(text: str) -> str:
    return text.replace("\x00", "").encode(errors="replace").decode()
