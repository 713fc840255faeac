"""Delivers with procrastinate and aiohttp: a plan as the argument, the outcome on standard output.

It runs in an environment of its own, and so imports nothing of ours. This is what a team builds in
a day: a task for each delivery, signed, sent over connections that stay open. The queue keeps a
log of its own of what became of each task.
"""

import base64
import hmac
import json
import os
import sys
import time
import uuid

import aiohttp
import procrastinate
import uvloop

_CONCURRENCY = 64
_CONNECTIONS = 16
_KEY = b"s" * 32


def _signed(body: bytes) -> dict[str, str]:
    delivery_id, timestamp = uuid.uuid4().hex, str(int(time.time()))
    signed = hmac.digest(_KEY, f"{delivery_id}.{timestamp}.".encode() + body, "sha256")
    return {
        "content-type": "application/json",
        "webhook-id": delivery_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": "v1," + base64.b64encode(signed).decode(),
    }


async def _run(plan: dict[str, object]) -> dict[str, float]:
    connector = procrastinate.PsycopgConnector(
        conninfo=str(plan["database"]), min_size=_CONNECTIONS, max_size=_CONNECTIONS
    )
    app = procrastinate.App(connector=connector)
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

    @app.task(retry=procrastinate.RetryStrategy(max_attempts=10, exponential_wait=5))
    async def deliver(url: str, text: str) -> None:
        body = json.dumps({"text": text}).encode()
        async with session.post(url, data=body, headers=_signed(body)) as response:
            await response.read()
            response.raise_for_status()

    async with app.open_async(), session:
        await app.schema_manager.apply_schema_async()
        text = "x" * int(str(plan["bytes"]))
        urls = [str(url) for url in plan["urls"]]  # type: ignore[attr-defined]
        for _ in range(int(str(plan["events"]))):
            await deliver.batch_defer_async(*({"url": url, "text": text} for url in urls))
        start, spent = time.perf_counter(), time.process_time()
        await app.run_worker_async(
            concurrency=_CONCURRENCY, wait=False, install_signal_handlers=False
        )
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - spent
        jobs = list(await app.job_manager.list_jobs_async(status="succeeded"))
    return {"deliveries": len(jobs), "seconds": seconds, "cpu_seconds": cpu_seconds}


def main() -> None:
    plan = json.loads(sys.argv[1])
    if plan["core"] is not None:
        os.sched_setaffinity(0, {plan["core"]})
    print(json.dumps(uvloop.run(_run(plan))))


if __name__ == "__main__":
    main()
