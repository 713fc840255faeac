"""Receiver of webhooks, with the public names of `huggingface_hub` and without gradio."""

from hublet.receiver.endpoint import webhook_endpoint
from hublet.receiver.schemas import (
    WebhookPayload,
    WebhookPayloadComment,
    WebhookPayloadDiscussion,
    WebhookPayloadDiscussionChanges,
    WebhookPayloadEvent,
    WebhookPayloadMovedTo,
    WebhookPayloadRepo,
    WebhookPayloadUpdatedFile,
    WebhookPayloadUpdatedRef,
    WebhookPayloadUrl,
    WebhookPayloadWebhook,
)
from hublet.receiver.server import WebhooksServer
from hublet.receiver.signatures import Refusal, verify

__all__ = [
    "Refusal",
    "WebhookPayload",
    "WebhookPayloadComment",
    "WebhookPayloadDiscussion",
    "WebhookPayloadDiscussionChanges",
    "WebhookPayloadEvent",
    "WebhookPayloadMovedTo",
    "WebhookPayloadRepo",
    "WebhookPayloadUpdatedFile",
    "WebhookPayloadUpdatedRef",
    "WebhookPayloadUrl",
    "WebhookPayloadWebhook",
    "WebhooksServer",
    "verify",
    "webhook_endpoint",
]
