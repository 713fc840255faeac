"""What the app must be told."""

import os
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Settings:
    hub: str
    bot_token: str = field(repr=False)
    webhook_secret: str = field(repr=False)
    client_id: str
    client_secret: str = field(repr=False)

    @classmethod
    def from_environment(cls) -> "Settings":
        return cls(
            hub=os.environ["HF_ENDPOINT"],
            bot_token=os.environ["BOT_TOKEN"],
            webhook_secret=os.environ["WEBHOOK_SECRET"],
            client_id=os.environ["OAUTH_CLIENT_ID"],
            client_secret=os.environ["OAUTH_CLIENT_SECRET"],
        )
