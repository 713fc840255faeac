"""A measurement on the wire: client contract 3.5."""

from hublet.core.schema import Schema


class GpuMetric(Schema):
    utilization: float
    memory_used_bytes: int
    memory_total_bytes: int


class JobMetric(Schema):
    """What a job uses at a moment, and what it may use."""

    # Of all its cores together.
    cpu_usage_pct: float
    # What it may use.
    cpu_millicores: int
    memory_used_bytes: int
    memory_total_bytes: int
    # Bits.
    rx_bps: int
    tx_bps: int
    gpus: dict[str, GpuMetric]
    replica: str
