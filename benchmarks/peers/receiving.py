"""A script that receives webhooks, for both libraries: `receiving.py LIBRARY PORT`.

It knows nothing but the library that is named, and runs in that one's environment.
"""

import importlib
import sys

SECRET = "coal & steam"

if __name__ == "__main__":
    library = importlib.import_module(sys.argv[1])
    app = library.WebhooksServer(webhook_secret=SECRET)

    async def hear(payload: library.WebhookPayload) -> dict[str, bool]:  # type: ignore[name-defined]
        return {"processed": payload.repo.type == "model" and payload.event.action == "update"}

    app.add_webhook(hear)

    # Without `share=False` the public library would open a tunnel to the public.
    app.launch(server_name="127.0.0.1", server_port=int(sys.argv[2]), share=False, quiet=True)
