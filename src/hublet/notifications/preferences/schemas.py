"""Preferences on the wire."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import MISSING, Field

from hublet.core.schema import Schema, Timestamp
from hublet.notifications.preferences.keys import (
    PRODUCT_UPDATES_AFTER,
    PRODUCT_UPDATES_AFTER_SENTENCE,
    SWITCHES,
    Key,
)
from hublet.notifications.preferences.records import Choices

# "yes", 1 and the like are no booleans.
Flag = Annotated[bool, Field(strict=True)]
PrepaidAmount = Annotated[
    str,
    Field(
        max_length=24,
        description="The amount that `launch_prepaid_credits` goes with; kept while that is on.",
    ),
]


def _switch(key: Key) -> Any:
    return Field(default=MISSING, description=SWITCHES[key].sentence)


class NotificationSettings(Schema):
    """What the user hears of. `web_…` decides the inbox, the others decide mail."""

    announcements: Flag | MISSING = _switch(Key.announcements)
    arxiv_paper_activity: Flag | MISSING = _switch(Key.arxiv_paper_activity)
    content_access_policy_request: Flag | MISSING = _switch(Key.content_access_policy_request)
    daily_papers_digest: Flag | MISSING = _switch(Key.daily_papers_digest)
    discussions_participating: Flag | MISSING = _switch(Key.discussions_participating)
    discussions_watched: Flag | MISSING = _switch(Key.discussions_watched)
    gated_user_access_request: Flag | MISSING = _switch(Key.gated_user_access_request)
    inference_endpoint_status: Flag | MISSING = _switch(Key.inference_endpoint_status)
    job_status: Flag | MISSING = _switch(Key.job_status)
    launch_autonlp: Flag | MISSING = _switch(Key.launch_autonlp)
    launch_spaces: Flag | MISSING = _switch(Key.launch_spaces)
    launch_prepaid_credits: Flag | MISSING = _switch(Key.launch_prepaid_credits)
    launch_training_cluster: Flag | MISSING = _switch(Key.launch_training_cluster)
    org_request: Flag | MISSING = _switch(Key.org_request)
    org_suggestions: Flag | MISSING = _switch(Key.org_suggestions)
    org_verified_suggestions: Flag | MISSING = _switch(Key.org_verified_suggestions)
    org_suggestions_to_create: Flag | MISSING = _switch(Key.org_suggestions_to_create)
    posts_participating: Flag | MISSING = _switch(Key.posts_participating)
    user_follows: Flag | MISSING = _switch(Key.user_follows)
    secret_detected: Flag | MISSING = _switch(Key.secret_detected)
    web_discussions_participating: Flag | MISSING = _switch(Key.web_discussions_participating)
    web_discussions_watched: Flag | MISSING = _switch(Key.web_discussions_watched)
    web_posts_participating: Flag | MISSING = _switch(Key.web_posts_participating)
    product_updates_after: Timestamp | MISSING = Field(
        default=MISSING, description=PRODUCT_UPDATES_AFTER_SENTENCE
    )
    api_inference_sunset: Flag | MISSING = _switch(Key.api_inference_sunset)
    locked_out: Flag | MISSING = _switch(Key.locked_out)
    repo_release: Flag | MISSING = _switch(Key.repo_release)

    def switches(self) -> Mapping[Key, bool]:
        """Return those that are named."""
        named = self.model_fields_set - {PRODUCT_UPDATES_AFTER}
        return {Key(name): getattr(self, name) for name in named}


class UpdateNotificationSettings(Schema):
    notifications: NotificationSettings
    prepaidAmount: PrepaidAmount | MISSING = MISSING


class NotificationSettingsAnswer(Schema):
    notifications: NotificationSettings
    prepaidAmount: PrepaidAmount | MISSING = MISSING

    @classmethod
    def of(cls, choices: Choices) -> Self:
        shown: dict[str, Any] = {key: choices.wants(key) for key in Key}
        if choices.product_updates_after is not None:
            shown[PRODUCT_UPDATES_AFTER] = choices.product_updates_after
        settings = NotificationSettings.model_validate(shown)
        if choices.prepaid_amount is None:
            return cls(notifications=settings)
        return cls(notifications=settings, prepaidAmount=choices.prepaid_amount)
