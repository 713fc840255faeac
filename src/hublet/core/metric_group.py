"""Metrics of a group of processes behind one port: whichever is scraped shows those of all.

Each process answers on a Unix socket with its numbers. What a process counts has the label `process`,
so that each series only grows until that process ends; levels of the whole hub are shown once.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

_ANSWER_SECONDS = 2.0
_LEVEL = "gauge"


class MetricFamily(msgspec.Struct, frozen=True):
    """One metric of a process, as it travels to another."""

    name: str
    documentation: str
    type: str
    # Name, labels and value of each number.
    samples: list[tuple[str, dict[str, str], float]]


_decoder = msgspec.json.Decoder(list[MetricFamily])


def families_of(registry: CollectorRegistry) -> list[MetricFamily]:
    return [
        MetricFamily(
            metric.name,
            metric.documentation,
            metric.type,
            [(each.name, dict(each.labels), float(each.value)) for each in metric.samples],
        )
        for metric in registry.collect()
    ]


def merge(own: str, families: Mapping[str, Iterable[MetricFamily]]) -> list[Metric]:
    """Return the metrics of all processes by name; `own` is the one that is scraped.

    Its levels count for the whole hub: it has just read them from the database. Of the others only
    those levels are shown that it does not have.
    """
    merged: dict[str, Metric] = {}
    shared = {each.name for each in families[own] if each.type == _LEVEL}
    for process, of_process in families.items():
        for family in of_process:
            if family.name in shared and process != own:
                continue
            if family.name not in merged:
                merged[family.name] = Metric(family.name, family.documentation, family.type)
            label = {} if family.name in shared else {"process": process}
            for name, labels, value in family.samples:
                merged[family.name].add_sample(name, label | labels, value)
    return list(merged.values())


class _Merged(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        yield from self._metrics


class MetricGroup:
    """The processes of one group, by name, with the paths of the sockets on which they answer."""

    def __init__(self, own: str, paths: Mapping[str, str]) -> None:
        self._own = own
        self._paths = paths

    async def render(self, registry: CollectorRegistry) -> bytes:
        """Return the metrics of all; those of a process that does not answer are left out."""
        others = [name for name in self._paths if name != self._own]
        answers = await asyncio.gather(*(_ask(self._paths[name]) for name in others))
        families = {self._own: families_of(registry), **dict(zip(others, answers, strict=True))}
        rendered = CollectorRegistry()
        rendered.register(_Merged(merge(self._own, dict(sorted(families.items())))))
        return generate_latest(rendered)


async def _ask(path: str) -> list[MetricFamily]:
    with suppress(OSError, TimeoutError, msgspec.DecodeError):
        async with asyncio.timeout(_ANSWER_SECONDS):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                return _decoder.decode(await reader.read())
            finally:
                writer.close()
    return []


@asynccontextmanager
async def answering(listener: socket.socket, registry: CollectorRegistry) -> AsyncIterator[None]:
    """Tell the other processes of the group the numbers of this one, during the body."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            writer.write(msgspec.json.encode(families_of(registry)))
            await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(answer, sock=listener)
    try:
        yield
    finally:
        server.close()
