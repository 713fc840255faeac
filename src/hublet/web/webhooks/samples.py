"""Samples for receivers: what a webhook sends, rendered as deliveries are, and programs that verify it."""

from collections.abc import Iterator

from markupsafe import Markup

from hublet.core.dataclasses import dataclass
from hublet.core.outbox import Event
from hublet.events import (
    CommentCreated,
    CommentSnapshot,
    RepoConfigUpdated,
    RepoContentUpdated,
    RepoImagesUpdated,
    RepoSnapshot,
    ThreadSnapshot,
    UpdatedImage,
    UpdatedRef,
)
from hublet.repos.records import RepoType
from hublet.web.rendering.code import highlight_language
from hublet.web.webhooks.views import render_json
from hublet.webhooks.records import Domain, WebhookRecord
from hublet.webhooks.triggers.payload import render_body, trigger_of

_SOMEBODY, _REPO, _THREAD, _COMMENT = (f"{number:024x}" for number in (0xADA, 0xB0, 0xC0, 0xD0))
_OLD, _NEW = "b0770fa0bf7da954e903d44b01cb4256097b1b8c", "359d420fdc59764d9148b9191bef8f025f9cecd2"


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadSample:
    domain: Domain
    # What happened, as in `repo.content`.
    scope: str
    # As it is sent, in bytes.
    body: bytes

    @property
    def code(self) -> Markup:
        return render_json(self.body)


def sample_payloads(webhook: WebhookRecord, base_url: str) -> list[PayloadSample]:
    """Return what a webhook would send of each domain that it hears of."""
    return [
        PayloadSample(
            domain=trigger.domain,
            scope=trigger.scope,
            body=render_body(trigger.payload, webhook.id),
        )
        for event in _sample_events(_sample_repo(webhook))
        if (trigger := trigger_of(event, base_url)) and trigger.domain in webhook.domains
    ]


def _sample_repo(webhook: WebhookRecord) -> RepoSnapshot:
    """Return an example under the first name that is watched."""
    first = webhook.watched[0]
    is_account = first.type.is_account
    return RepoSnapshot(
        id=_REPO,
        type="model" if is_account else first.type,
        name=f"{first.name}/engine" if is_account else first.name,
        owner_id=first.account_id or _SOMEBODY,
        private=False,
        head_sha=_NEW,
        tags=("license:mit",),
    )


def _sample_events(repo: RepoSnapshot) -> Iterator[Event]:
    yield _content_event(repo)
    visibility: dict[str, str | bool | None] = {"private": True, "visibility": "private"}
    yield RepoConfigUpdated(repo=repo, updated_config=visibility, actor_id=_SOMEBODY)
    thread = ThreadSnapshot(
        id=_THREAD,
        kind="discussion",
        title="It does not turn",
        author_id=_SOMEBODY,
        repo=repo,
        number=1,
        status="open",
    )
    comment = CommentSnapshot(id=_COMMENT, author_id=_SOMEBODY, content="Have you tried coal?")
    yield CommentCreated(thread=thread, comment=comment, actor_id=_SOMEBODY)


def _content_event(repo: RepoSnapshot) -> Event:
    if repo.type == RepoType.container:
        image = UpdatedImage(path="", tag="1.0", old_digest=None, new_digest=f"sha256:{'a' * 64}")
        return RepoImagesUpdated(repo=repo, updated_images=(image,), actor_id=_SOMEBODY)
    ref = UpdatedRef(ref="refs/heads/main", old_sha=_OLD, new_sha=_NEW)
    return RepoContentUpdated(repo=repo, updated_refs=(ref,), actor_id=_SOMEBODY)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverSample:
    """A program that receives and verifies; it reads the secret from WEBHOOK_SECRET."""

    name: str
    language: str
    text: str

    @property
    def code(self) -> Markup:
        return Markup("\n").join(highlight_language(self.text, self.language))


RECEIVERS = (
    ReceiverSample(
        name="Python, with the receiver of Hublet (verifies signature and secret)",
        language="python",
        text="""\
# pip install hublet; then: WEBHOOK_SECRET=… python receive.py
from hublet.receiver import WebhookPayload, WebhooksServer

app = WebhooksServer(require_signature=True)


@app.add_webhook("/hook")
async def hook(payload: WebhookPayload):
    print(payload.event.scope, payload.event.action, payload.repo.name)


if __name__ == "__main__":
    app.launch(server_name="0.0.0.0", server_port=7860)  # POST …:7860/webhooks/hook
""",
    ),
    ReceiverSample(
        name="Python, with huggingface_hub (compares the secret)",
        language="python",
        text="""\
# pip install "huggingface_hub[webhooks]"; then: WEBHOOK_SECRET=… python receive.py
from huggingface_hub import WebhookPayload, WebhooksServer

app = WebhooksServer()


@app.add_webhook("/hook")
async def hook(payload: WebhookPayload):
    print(payload.event.scope, payload.event.action, payload.repo.name)


app.launch()
""",
    ),
    ReceiverSample(
        name="Node (verifies the signature)",
        language="javascript",
        text="""\
// WEBHOOK_SECRET=… node receive.mjs
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const secret = process.env.WEBHOOK_SECRET;
const key = secret.startsWith("whsec_") ? Buffer.from(secret.slice(6), "base64") : Buffer.from(secret);

function isGenuine(headers, body) {
  const sentAt = headers["webhook-timestamp"];
  if (!(Math.abs(Date.now() / 1000 - Number(sentAt)) <= 300)) return false;
  const signed = Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${sentAt}.`), body]);
  const expected = Buffer.from("v1," + createHmac("sha256", key).update(signed).digest("base64"));
  return (headers["webhook-signature"] ?? "").split(" ").some((each) => {
    const given = Buffer.from(each);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray());
  const genuine = isGenuine(request.headers, body);
  response.writeHead(genuine ? 200 : 401).end(genuine ? "" : "The signature is another one.");
  if (genuine) console.log(JSON.parse(body).event);
}).listen(Number(process.env.PORT ?? 9000));
""",
    ),
)
