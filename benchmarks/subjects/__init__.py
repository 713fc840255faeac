"""One module for each thing that is measured, under the name it is asked for by."""

from collections.abc import Callable, Iterator

from benchmarks.figures import Row
from benchmarks.subjects import (
    attacks,
    bearer,
    cli,
    commits,
    downloads,
    events,
    group_commit,
    hidden_repos,
    jobs,
    memory,
    notifications,
    notifications_fan_out,
    notifications_streams,
    oauth,
    proxy,
    receiver,
    revoke,
    scim,
    start,
    testing,
    trees,
    uploads,
    webhooks,
    webhooks_kills,
    webhooks_latency,
    webhooks_matching,
    webhooks_neighbours,
    whoami,
)
from benchmarks.workbench import Workbench

Measure = Callable[[Workbench], Iterator[Row]]

SUBJECTS: dict[str, Measure] = {
    "whoami": whoami.measure,
    "bearer": bearer.measure,
    "start": start.measure,
    "testing": testing.measure,
    "memory": memory.measure,
    "cli": cli.measure,
    "revoke": revoke.measure,
    "hidden_repos": hidden_repos.measure,
    "events": events.measure,
    "group_commit": group_commit.measure,
    "uploads": uploads.measure,
    "commits": commits.measure,
    "trees": trees.measure,
    "downloads": downloads.measure,
    "webhooks": webhooks.measure,
    "webhook_latency": webhooks_latency.measure,
    "webhook_neighbours": webhooks_neighbours.measure,
    "webhook_kills": webhooks_kills.measure,
    "webhook_matching": webhooks_matching.measure,
    "notifications": notifications.measure,
    "notification_fan_out": notifications_fan_out.measure,
    "notification_streams": notifications_streams.measure,
    "oauth": oauth.measure,
    "scim": scim.measure,
    "jobs": jobs.measure,
    "proxy": proxy.measure,
    "receiver": receiver.measure,
    "attacks": attacks.measure,
}
