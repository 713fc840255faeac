"""Texts of all messages that the hub sends, word by word.

No text holds a secret: of a credential it shows the name and the hint, of a webhook the id.
"""

from hublet.events import (
    AccessEnded,
    CredentialRevoked,
    JobEnded,
    RepoSnapshot,
    SecretDetected,
    WebhookFailing,
    WebhookRecovered,
    WebhookSuspended,
    WebhookThrottled,
)
from hublet.notifications.records import MessageText
from hublet.repos.records import RepoType

_LONGEST_NAME = 100
_LONGEST_TEXT = 500

_REVOKED_BY = {
    "administrator": "An administrator of this hub revoked it.",
    "operator": "Whoever runs this hub revoked it.",
    "organization": "An administrator of its organization revoked it.",
    "reported": "Somebody presented its value as leaked, and that is proof enough to revoke it.",
}

# The ends of a job that cause a message.
JOB_ENDINGS = {"COMPLETED": "is done", "ERROR": "failed"}


def clean_name(name: str, *, longest: int = _LONGEST_NAME) -> str:
    """Return a name that a user chose on one line, and not too long."""
    name = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def _written(text: str) -> str:
    """Return what somebody wrote to another person, if anything."""
    return f"They wrote: {clean_name(text, longest=_LONGEST_TEXT)}" if text else ""


def webhook_failing(event: WebhookFailing, *, whose: str, url: str) -> MessageText:
    webhook = f"The webhook {event.webhook_id} of {whose}"
    if event.percent == 0:
        return MessageText(
            kind="webhook-failing",
            title=f"{webhook} fails",
            body=_paragraphs(
                f"The last deliveries of this webhook failed. {_last_failure(event)}",
                "Its target is now only probed from time to time; what could not be delivered is "
                "sent when it answers again.",
                url,
            ),
        )
    return MessageText(
        kind="webhook-failing",
        title=f"{webhook} keeps failing and will be suspended",
        body=_paragraphs(
            f"No delivery of this webhook has succeeded for days. {_last_failure(event)}",
            f"{event.percent} percent of the time are over after which it is suspended. "
            "Look at its deliveries for what its target answers.",
            url,
        ),
    )


def webhook_suspended(event: WebhookSuspended, *, whose: str, url: str) -> MessageText:
    return MessageText(
        kind="webhook-suspended",
        title=f"The webhook {event.webhook_id} of {whose} is suspended",
        body=_paragraphs(
            f"Its deliveries failed until it was switched off. {_last_failure(event)}",
            "What it would have delivered is still recorded. Enable the webhook once its target "
            "answers again, and recover what was missed.",
            url,
        ),
    )


def webhook_throttled(event: WebhookThrottled, *, whose: str, url: str) -> MessageText:
    return MessageText(
        kind="webhook-throttled",
        title=f"The webhook {event.webhook_id} of {whose} has reached its daily limit",
        body=_paragraphs(
            f"It had {event.limit} deliveries in 24 hours, as many as this hub allows. Until they are "
            "over, what it matches is recorded and not sent.",
            "Recover what was missed, or let the webhook watch less.",
            url,
        ),
    )


def webhook_recovered(event: WebhookRecovered, *, whose: str, url: str) -> MessageText:
    return MessageText(
        kind="webhook-recovered",
        title=f"The webhook {event.webhook_id} of {whose} works again",
        body=_paragraphs("Its target answers, and what waited is being delivered.", url),
    )


def _last_failure(event: WebhookFailing | WebhookSuspended) -> str:
    if event.status is not None:
        return f"The last answer had the status {event.status}."
    return f"The last attempt ended with: {event.reason}." if event.reason else ""


def credential_revoked(event: CredentialRevoked, *, owner: str | None = None) -> MessageText:
    """To the owner of a credential; with an `owner`, to those responsible for a service account."""
    whose = f"The token of {owner}" if owner else "Your token"
    return MessageText(
        kind="credential-revoked",
        title=f"{whose} called {clean_name(event.name)} was revoked",
        body=_paragraphs(
            f"The token {event.hint} does not work any more. {_REVOKED_BY[event.reason]}",
            _report_source(event),
            "Create another one if you still need it. If you do not know how its value became "
            "known, look for it in files, logs and repositories of yours.",
        ),
    )


def _report_source(event: CredentialRevoked) -> str:
    known = event.reason == "reported" and event.address
    return f"The report came from the address {event.address}." if known else ""


def credential_detected(event: SecretDetected, *, owner: str | None = None) -> MessageText:
    """To the owner of a credential; with an `owner`, to those responsible for a service account."""
    whose = f"The token of {owner}" if owner else "Your token"
    where = f"the {event.repo.type} {event.repo.name}"
    return MessageText(
        kind="credential-detected",
        title=f"{whose} called {clean_name(event.name)} can be read in {where}",
        body=_paragraphs(
            f"The token {event.hint} stands in the file {clean_name(event.path)} of {where}, in the "
            f"commit {event.commit[:12]}. Everybody can read it there.",
            "It still works. Revoke it now, and create another one if you need it: to remove it "
            "from the file is not enough, because the commit stays.",
        ),
    )


def access_ended(event: AccessEnded) -> MessageText:
    app = clean_name(event.app_name)
    return MessageText(
        kind="access-ended",
        title=f"The access of {app} to your account was ended",
        body=_paragraphs(
            f"Somebody came with a login of {app} that had been used before. It may have been "
            "stolen, so everything that the app could do for you has ended.",
            f"Sign in to {app} again if you still use it.",
        ),
    )


def account_disabled() -> MessageText:
    return MessageText(
        kind="account-disabled",
        title="Your account was switched off",
        body=_paragraphs(
            "An administrator switched off your account on this hub: you cannot sign in, and "
            "none of your tokens works.",
            "What you own is kept. Ask an administrator of the hub if you think this is a mistake.",
        ),
    )


def email_verified(address: str) -> MessageText:
    return MessageText(
        kind="email-verified",
        title=f"{address} is an address of your account now",
        body=_paragraphs(
            "You can sign in with it, and in three days ask for a new password with it.",
            "If it was not you who added it, remove it in the settings of your account, revoke your "
            "tokens and change your password.",
        ),
    )


def password_changed() -> MessageText:
    return MessageText(
        kind="password-changed",
        title="Your password was changed",
        body=_paragraphs(
            "The password of your account is another one now, and all browsers are signed out that "
            "were signed in with the old one.",
            "If it was not you, ask for a new password on the page where you sign in, and look at "
            "your sessions, tokens and e-mail addresses.",
        ),
    )


def new_follower(*, follower: str) -> MessageText:
    return MessageText(
        kind="user-followed",
        title=f"{follower} follows you",
        body=f"{follower} began to follow you, and sees what you publish.",
    )


def access_requested(repo: RepoSnapshot, *, requester: str, base_url: str) -> MessageText:
    return MessageText(
        kind="access-requested",
        title=f"{requester} asks to read the {repo.type} {repo.name}",
        body=_paragraphs(
            f"The {repo.type} {repo.name} is gated. {requester} waits for you, or for somebody "
            "else who manages it, to accept or reject the request.",
            f"{_url(repo, base_url)}/settings/access-requests",
        ),
    )


def access_accepted(repo: RepoSnapshot, base_url: str) -> MessageText:
    return MessageText(
        kind="access-accepted",
        title=f"You may read the {repo.type} {repo.name}",
        body=_paragraphs(
            f"Somebody who manages the {repo.type} {repo.name} gave you access to its content.",
            f"{_url(repo, base_url)}/tree/main",
        ),
    )


def access_rejected(repo: RepoSnapshot, base_url: str) -> MessageText:
    return MessageText(
        kind="access-rejected",
        title=f"Your request to read the {repo.type} {repo.name} was rejected",
        body=_paragraphs(
            f"Somebody who manages the {repo.type} {repo.name} rejected your request; its "
            "content stays closed to you.",
            _url(repo, base_url),
        ),
    )


def added_to_organization(*, organization: str, role: str, by: str | None) -> MessageText:
    who = by or "An administrator"
    return MessageText(
        kind="organization-joined",
        title=f"You are a member of {organization}",
        body=f"{who} added you to the organization {organization}, with the role {role}.",
    )


def join_requested(
    *, organization: str, requester: str, message: str, base_url: str
) -> MessageText:
    return MessageText(
        kind="organization-join-requested",
        title=f"{requester} asks to join {organization}",
        body=_paragraphs(
            f"{requester} waits for you, or for another administrator of the organization "
            f"{organization}, to accept or decline.",
            _written(message),
            f"{base_url}/organizations/{organization}/settings/members",
        ),
    )


def join_request_declined(*, organization: str, reason: str) -> MessageText:
    return MessageText(
        kind="organization-join-declined",
        title=f"Your request to join {organization} was declined",
        body=_paragraphs(
            f"An administrator of the organization {organization} declined your request.",
            _written(reason),
        ),
    )


def job_ended(event: JobEnded, *, owner: str, base_url: str) -> MessageText:
    job = event.job_id if event.name is None else f"{clean_name(event.name)} ({event.job_id})"
    ending = JOB_ENDINGS[event.stage]
    return MessageText(
        kind="job-ended",
        title=f"The job {job} of {owner} {ending}",
        body=_paragraphs(
            f"The job {job} of {owner} {ending}.",
            "" if event.message is None else f"The reason: {clean_name(event.message)}.",
            f"{base_url}/jobs/{owner}/{event.job_id}",
        ),
    )


def _url(repo: RepoSnapshot, base_url: str) -> str:
    return f"{base_url}/{RepoType(repo.type).prefix}{repo.name}"


def _paragraphs(*parts: str) -> str:
    return "\n\n".join(part.strip() for part in parts if part.strip())
