"""Schemas of preferences: the request to update them, and the response."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import MISSING, Field

from hublet.core.schema import Flag, Schema, Timestamp
from hublet.notifications.preferences.switches import (
    PRODUCT_UPDATES_AFTER,
    PRODUCT_UPDATES_AFTER_SENTENCE,
    SWITCHES,
    PreferenceKey,
    Preferences,
)

PrepaidAmount = Annotated[
    str,
    Field(
        max_length=24,
        description="The amount that `launch_prepaid_credits` goes with; kept while that is on.",
    ),
]


def _switch(key: PreferenceKey) -> Any:
    return Field(default=MISSING, description=SWITCHES[key].sentence)


class NotificationSettings(Schema):
    """What the user hears of. `web_…` decides the inbox, the others decide mail."""

    announcements: Flag | MISSING = _switch(PreferenceKey.announcements)
    arxiv_paper_activity: Flag | MISSING = _switch(PreferenceKey.arxiv_paper_activity)
    content_access_policy_request: Flag | MISSING = _switch(
        PreferenceKey.content_access_policy_request
    )
    daily_papers_digest: Flag | MISSING = _switch(PreferenceKey.daily_papers_digest)
    discussions_participating: Flag | MISSING = _switch(PreferenceKey.discussions_participating)
    discussions_watched: Flag | MISSING = _switch(PreferenceKey.discussions_watched)
    gated_user_access_request: Flag | MISSING = _switch(PreferenceKey.gated_user_access_request)
    inference_endpoint_status: Flag | MISSING = _switch(PreferenceKey.inference_endpoint_status)
    job_status: Flag | MISSING = _switch(PreferenceKey.job_status)
    launch_autonlp: Flag | MISSING = _switch(PreferenceKey.launch_autonlp)
    launch_spaces: Flag | MISSING = _switch(PreferenceKey.launch_spaces)
    launch_prepaid_credits: Flag | MISSING = _switch(PreferenceKey.launch_prepaid_credits)
    launch_training_cluster: Flag | MISSING = _switch(PreferenceKey.launch_training_cluster)
    org_request: Flag | MISSING = _switch(PreferenceKey.org_request)
    org_suggestions: Flag | MISSING = _switch(PreferenceKey.org_suggestions)
    org_verified_suggestions: Flag | MISSING = _switch(PreferenceKey.org_verified_suggestions)
    org_suggestions_to_create: Flag | MISSING = _switch(PreferenceKey.org_suggestions_to_create)
    posts_participating: Flag | MISSING = _switch(PreferenceKey.posts_participating)
    user_follows: Flag | MISSING = _switch(PreferenceKey.user_follows)
    secret_detected: Flag | MISSING = _switch(PreferenceKey.secret_detected)
    web_discussions_participating: Flag | MISSING = _switch(
        PreferenceKey.web_discussions_participating
    )
    web_discussions_watched: Flag | MISSING = _switch(PreferenceKey.web_discussions_watched)
    web_posts_participating: Flag | MISSING = _switch(PreferenceKey.web_posts_participating)
    product_updates_after: Timestamp | MISSING = Field(
        default=MISSING, description=PRODUCT_UPDATES_AFTER_SENTENCE
    )
    api_inference_sunset: Flag | MISSING = _switch(PreferenceKey.api_inference_sunset)
    locked_out: Flag | MISSING = _switch(PreferenceKey.locked_out)
    repo_release: Flag | MISSING = _switch(PreferenceKey.repo_release)

    def switches(self) -> Mapping[PreferenceKey, bool]:
        """Return the switches that are named."""
        named = self.model_fields_set - {PRODUCT_UPDATES_AFTER}
        return {PreferenceKey(name): getattr(self, name) for name in named}


class UpdateNotificationSettings(Schema):
    notifications: NotificationSettings
    prepaidAmount: PrepaidAmount | MISSING = MISSING


class NotificationSettingsAnswer(Schema):
    notifications: NotificationSettings
    prepaidAmount: PrepaidAmount | MISSING = MISSING

    @classmethod
    def of(cls, choices: Preferences) -> Self:
        rendered: dict[str, Any] = {key: choices.wants(key) for key in PreferenceKey}
        if choices.product_updates_after is not None:
            rendered[PRODUCT_UPDATES_AFTER] = choices.product_updates_after
        settings = NotificationSettings.model_validate(rendered)
        if choices.prepaid_amount is None:
            return cls(notifications=settings)
        return cls(notifications=settings, prepaidAmount=choices.prepaid_amount)
