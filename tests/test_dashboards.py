"""The dashboard and the alert rules name metrics and labels that /metrics really has."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from fastapi import FastAPI

from hublet.webhooks.delivery.metrics import DeliveryMetrics

DEPLOY = Path(__file__).parent.parent / "deploy"
DASHBOARD = DEPLOY / "grafana" / "hublet.json"
RULES = DEPLOY / "prometheus" / "hublet.rules.yaml"
# Added by Prometheus itself, and by the text format of histograms.
EVERYWHERE = {"instance", "job", "le"}


def expressions() -> Iterator[str]:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        yield from (rule["expr"] for rule in group["rules"])
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    yield from (each["definition"] for each in dashboard["templating"]["list"][1:])


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"\bhublet_\w+", expression))


def labels_in(expression: str) -> dict[str, set[str]]:
    """Return the labels that an expression wants of each metric."""
    grouped = {
        label.strip()
        for labels in re.findall(r"\bby \(([^)]*)\)", expression)
        for label in labels.split(",")
    }
    wanted = {name: set(grouped) for name in names_in(expression)}
    for name, selector in re.findall(r"\b(hublet_\w+)\{([^}]*)\}", expression):
        wanted[name] |= set(re.findall(r"(\w+)\s*[=!]", selector))
    return wanted


def exposed(app: FastAPI) -> dict[str, set[str]]:
    """Return the labels of every series that Prometheus would see."""
    found: dict[str, set[str]] = {}
    for family in app.state.metrics.registry.collect():
        # A metric that has no sample yet still knows its labels.
        labels = set(getattr(family, "_labelnames", ()))
        suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}
        for suffix in suffixes.get(family.type, [""]):
            found[family.name + suffix] = labels | {
                label for sample in family.samples for label in sample.labels
            }
    return found


@pytest.fixture
async def metrics(app: FastAPI, client: httpx2.AsyncClient) -> dict[str, set[str]]:
    app.state.metrics.registry.register(DeliveryMetrics(lambda: 0))
    response = await client.get("/metrics")
    assert response.status_code == 200
    return exposed(app)


async def test_every_metric_and_label_is_exposed(metrics: dict[str, set[str]]) -> None:
    wanted = [(name, label) for each in expressions() for name, label in _pairs(each)]

    assert len(wanted) > 20
    assert [name for name, _ in wanted if name not in metrics] == []
    assert [
        (name, label)
        for name, label in wanted
        if label is not None and label not in metrics[name] | EVERYWHERE
    ] == []


def _pairs(expression: str) -> Iterator[tuple[str, Any]]:
    for name, labels in labels_in(expression).items():
        yield name, None
        yield from ((name, label) for label in labels)


async def test_no_metric_is_left_out_of_the_dashboard(metrics: dict[str, set[str]]) -> None:
    shown = {name for each in expressions() for name in names_in(each)}
    # How many results are written in one commit is for who tunes the hub.
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in metrics}
    drawn = {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown}

    assert families - drawn == {"hublet_webhook_commit_size"}


@pytest.mark.full
def test_prometheus_takes_the_rules_and_they_fire() -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed: Debian's package prometheus has it.")
    for command in (["check", "rules", str(RULES)], ["test", "rules", "hublet.rules.test.yaml"]):
        done = subprocess.run(
            ["promtool", *command], cwd=RULES.parent, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
