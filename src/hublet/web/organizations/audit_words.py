"""Audit log for people: actions in words, and filters as they stand in an address."""

from datetime import UTC, date, datetime, timedelta
from urllib.parse import urlencode

from hublet.accounts.records import AuditEntry, AuditFilter
from hublet.core.clock import to_micros
from hublet.core.dataclasses import dataclass
from hublet.core.errors import InvalidRequest

# What each action is, after the name of who did it; the details of a line fill the braces.
WORDS = {
    "organization.create": "created the organization",
    "organization.update": "changed the organization",
    "organization.plan": "moved the organization from the plan {from} to {to}",
    "member.add": "added {target} with the role {role}",
    "member.role": "gave {target} the role {role}",
    "member.remove": "removed {target}",
    "member.close-account": "closed their account",
    "invitation.create": "made an invitation ({target}) with the role {role}",
    "invitation.revoke": "revoked an invitation ({target})",
    "invitation.accept": "accepted an invitation",
    "join-request.create": "asked to join",
    "join-request.withdraw": "does not ask to join any more",
    "join-request.accept": "accepted the request of {target} to join",
    "join-request.decline": "declined the request of {target} to join",
    "resource-group.create": "created the resource group {target}",
    "resource-group.update": "changed the resource group {target}",
    "resource-group.delete": "deleted the resource group {target}",
    "resource-group-member.add": "added {target} to the resource group {resource_group} as {role}",
    "resource-group-member.role": "gave {target} the role {role} in the resource group {resource_group}",
    "resource-group-member.remove": "removed {target} from the resource group {resource_group}",
    "repo.create": "created the {type} {target}",
    "repo.delete": "deleted the {type} {target}",
    "repo.move": "moved the {type} {from} to {to}",
    "repo.settings": "changed the settings of the {type} {target}",
    "blog.resource-group": "put the blog {target} into the resource group {resource_group}",
    "repo.resource-group": "put {target} into the resource group {resource_group}",
    "collection.create": "created the collection {target}",
    "collection.update": "changed the collection {target}",
    "collection.delete": "deleted the collection {target}",
    "collection.resource-group": "put the collection {target} into the resource group {resource_group}",
    "service-account.create": "created the service account {target} with the role {role}",
    "service-account.delete": "deleted the service account {target}",
    "service-account-token.create": "created the token {name} of {target}",
    "service-account-token.revoke": "revoked the token {name} of {target}",
    "service-account-token.update": "changed the token {name} of {target}",
    "service-account-token.rotate": "rotated the token {name} of {target}",
    "member-token.revoke": "cut the token {name} of {target} off",
    "organization.network-security": "changed the network security",
    "email-domain.set": "lets people of {target} join with the role {role}",
    "email-domain.remove": "lets people of {target} join no more by themselves",
    "resource-group.auto-join": "changed who joins the resource group {target} by themselves",
    "credential.revoke": "revoked the token {target}",
    "oauth-app.create": "registered the application {name}",
    "oauth-app.update": "changed the application {name}",
    "oauth-app.delete": "deleted the application {name}",
    "oauth-app.create-secret": "gave the application {name} a secret",
    "oauth-app.delete-secret": "deleted a secret of the application {name}",
    "oauth-app.allow-exchange": "allowed the application {name} to exchange tokens",
    "oauth-app.forbid-exchange": "forbade the application {name} to exchange tokens",
    "oauth-settings.update": "set the lifetime of exchanged tokens to {exchange_seconds} seconds",
    "token.exchange": "exchanged {target} for a token: {result}",
    "webhook.create": "created the webhook {target}",
    "webhook.update": "changed the webhook {target}",
    "webhook.delete": "deleted the webhook {target}",
    "webhook.enable": "switched the webhook {target} on",
    "webhook.disable": "paused the webhook {target}",
    "job.ssh": "opened SSH to the job {target}",
    "scim-user.create": "provisioned {target}",
    "scim-user.update": "changed the provisioned user {target}",
    "scim-user.activate": "activated {target}",
    "scim-user.deactivate": "deactivated {target}",
    "scim-user.delete": "deleted the provisioned user {target}",
    "scim-group.create": "provisioned the group {target}",
    "scim-group.update": "changed the provisioned group {target}",
    "scim-group.delete": "deleted the provisioned group {target}",
}
# Kinds of objects to filter by, beside single actions.
KINDS = {
    "member": "Members",
    "invitation": "Invitations",
    "join-request": "Requests to join",
    "resource-group": "Resource groups",
    "repo": "Repositories",
    "collection": "Collections",
    "service-account": "Service accounts",
    "email-domain": "E-mail domains",
    "oauth-app": "OAuth applications",
    "webhook": "Webhooks",
    "scim-user": "Provisioned users",
    "scim-group": "Provisioned groups",
    "organization": "The organization",
}


class _Details(dict[str, object]):
    def __missing__(self, key: str) -> str:
        return "?"


def sentence_of(line: AuditEntry) -> str:
    """Say in words what was done; an action of another version is shown by its name."""
    details = _Details(line.details, target=line.target)
    if line.action.endswith(".resource-group") and not line.details.get("resource_group"):
        return f"took {line.target} out of its resource group"
    words = WORDS.get(line.action)
    return f"{line.action} {line.target}" if words is None else words.format_map(details)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """Filters of the audit log as they stand in the address."""

    actor: str = ""
    action: str = ""
    since: str = ""
    until: str = ""
    search: str = ""

    @property
    def text(self) -> str:
        """The filters that are set, as the query of an address."""
        names = ("actor", "action", "since", "until", "search")
        return urlencode({name: value for name in names if (value := getattr(self, name))})

    def to_filter(self) -> AuditFilter:
        """Return what the store takes; the last day counts whole."""
        everything = AuditFilter()
        return AuditFilter(
            actor=self.actor,
            action=self.action,
            search=self.search,
            since=_midnight("since", self.since) if self.since else everything.since,
            until=_midnight("until", self.until, days=1) if self.until else everything.until,
        )


def _midnight(field: str, text: str, *, days: int = 0) -> int:
    try:
        day = date.fromisoformat(text) + timedelta(days=days)
    except (ValueError, OverflowError):
        raise InvalidRequest(f"{field} must be a day, as in 2026-11-17.") from None
    return to_micros(datetime(day.year, day.month, day.day, tzinfo=UTC))
