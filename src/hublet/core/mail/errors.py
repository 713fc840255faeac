"""How sending a mail fails. No message names an address or a line of the mail.

LetterRefused         the server will never take this one
PostUnavailable       nothing can be sent now
└── LetterDelayed     this one cannot, others may
"""


class LetterRefused(Exception):
    pass


class PostUnavailable(Exception):
    pass


class LetterDelayed(PostUnavailable):
    pass
