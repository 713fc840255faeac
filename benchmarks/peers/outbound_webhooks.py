"""Delivers with django-outbound-webhooks: a plan as the argument, the outcome on standard output.

It runs in an environment of its own, and so imports nothing of ours.
"""

import base64
import json
import os
import sys
import time
from dataclasses import dataclass

import django
from django.conf import settings
from django.core.management import call_command
from django.db import transaction


@dataclass(frozen=True)
class Pushed:
    text: str


def _database(url: str) -> dict[str, object]:
    if not url.startswith("postgresql"):
        # As durable as ours: a log beside the file, and a wait for the disk at each commit.
        pragmas = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": url,
            "OPTIONS": {"init_command": pragmas},
        }
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415 - only where it is needed.

    parts = conninfo_to_dict(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts["dbname"],
        "USER": parts.get("user", ""),
        "PASSWORD": parts.get("password", ""),
        "HOST": parts.get("host", ""),
        "PORT": parts.get("port", ""),
    }


def _configure(url: str) -> None:
    settings.configure(
        INSTALLED_APPS=[
            "django.contrib.contenttypes",
            "django.contrib.auth",
            "django_domain_events",
            "django_outbound_webhooks",
        ],
        DATABASES={"default": _database(url)},
        DJANGO_OUTBOUND_WEBHOOKS={"ALLOW_PRIVATE_ADDRESSES": True},
        SECRET_KEY="only for a benchmark",
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    )
    django.setup()
    call_command("migrate", verbosity=0)


def main() -> None:
    plan = json.loads(sys.argv[1])
    if plan["core"] is not None:
        os.sched_setaffinity(0, {plan["core"]})
    _configure(plan["database"])
    from django_domain_events import event, fire  # noqa: PLC0415 - only after the setup.
    from django_domain_events.models import DeliveryRecord  # noqa: PLC0415
    from django_outbound_webhooks import register_endpoint  # noqa: PLC0415

    pushed = event(name="hub.Pushed")(Pushed)
    secret = "whsec_" + base64.b64encode(b"s" * 32).decode()
    for number, url in enumerate(plan["urls"]):
        register_endpoint(
            name=f"endpoint {number}", url=url, secret=secret, event_names=["hub.Pushed"]
        )
    for _ in range(plan["events"]):
        with transaction.atomic():
            fire(pushed(text="x" * plan["bytes"]))
    waiting = DeliveryRecord.objects.filter(status="pending")
    deliveries = waiting.count()
    start, spent = time.perf_counter(), time.process_time()
    while waiting.exists():
        call_command("deliver_events", once=True, verbosity=0, stdout=sys.stderr)
    outcome = {
        "deliveries": deliveries,
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - spent,
    }
    print(json.dumps(outcome))


if __name__ == "__main__":
    main()
