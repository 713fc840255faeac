"""Mail: messages, and the transports that send them."""

from hublet.core.mail.message import MailDelayed, MailMessage, MailRefused, MailUnavailable
from hublet.core.mail.transport import MailTransport, mail_domain, mail_folder, open_transport

__all__ = [
    "MailDelayed",
    "MailMessage",
    "MailRefused",
    "MailTransport",
    "MailUnavailable",
    "mail_domain",
    "mail_folder",
    "open_transport",
]
