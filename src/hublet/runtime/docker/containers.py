"""Mapping of attempts to the Docker Engine API: config out, observation and usage in."""

import hashlib
import resource
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from hublet.core import clock
from hublet.jobs.records import Observation, Phase, Usage
from hublet.runtime.attempt_folder import spill_long_variables
from hublet.runtime.cgroups import MAX_PROCESSES
from hublet.runtime.records import BindMount, LaunchOrder, RunnerCapabilities

HUB = "hublet.hub"
FOLDER = "hublet.folder"
LOG = "hublet.log"
LOG_BYTES = "hublet.log-bytes"
TIMEOUT = "hublet.timeout"
GRACE = "hublet.grace"
GROUP = "hublet.group"

CONTENT = "/app"
VARIABLES = "/run/hublet"
# Default capabilities of an engine, without those that reach beyond files of the container.
_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID", "KILL", "NET_BIND_SERVICE")
# A short line takes this many times more bytes in the engine's log than in ours.
_ENGINE_LOG_FACTOR = 6
_MAX_FILES = 65536
_NANO = 10**9
# It ignores the option below.
_PODMAN = "Podman Engine"
_HOST_IN_GROUPS = (
    "Podman lets the jobs of a network group reach this machine, though jobs.network is none."
)
# Option of a bridge: the host has no address on it.
_NO_HOST_ADDRESS = "com.docker.network.bridge.inhibit_ipv4"
# Year of the engine's zero time.
_NEVER = "0001-"


def capabilities_of(version: dict[str, Any], *, network: bool) -> RunnerCapabilities:
    """Return the capabilities of an engine by its version response."""
    is_podman = any(part.get("Name") == _PODMAN for part in version.get("Components") or ())
    return RunnerCapabilities(
        usable=True,
        sentence=f"Jobs run as containers of the Docker engine {version['Version']}.",
        limits=True,
        volumes=True,
        network_groups=network or not is_podman,
        without_groups=_HOST_IN_GROUPS,
    )


def name_of(order: LaunchOrder) -> str:
    return f"hublet-{order.job_id}-{order.number}"


def group_of(order: LaunchOrder, *, hub: str) -> str | None:
    """Return the name of the network of an attempt's group; None: it is in none."""
    if order.group is None:
        return None
    digest = hashlib.sha256(f"{hub}/{order.group.key}".encode()).hexdigest()
    return f"hublet-{digest[:24]}"


def network_config_of(name: str, *, hub: str, network: bool) -> dict[str, Any]:
    """Return the network of a group; without `network` it has only its members."""
    return {
        "Name": name,
        "Driver": "bridge",
        "Internal": not network,
        # Otherwise the machine would be on it, with everything that listens there.
        "Options": {} if network else {_NO_HOST_ADDRESS: "true"},
        "CheckDuplicate": True,
        "Labels": {HUB: hub},
    }


def with_variable_files(order: LaunchOrder) -> LaunchOrder:
    """Return the order with long variables in files that are mounted into the job. Blocks."""
    folder = order.folder / "variables"
    fitting = spill_long_variables(order.environment, home=folder, seen_at=VARIABLES)
    if fitting == order.environment:
        return order
    # Readable for any user of the image; the folder above keeps others out.
    folder.chmod(0o755)
    files = BindMount(source=folder, target=VARIABLES, read_only=True)
    return replace(order, environment=fitting, binds=(*order.binds, files))


def config_of(
    order: LaunchOrder, *, image: str, hub: str, network: bool, data_dir: Path
) -> dict[str, Any]:
    """Return the configuration of the container; its labels are all that another worker needs."""
    labels = {
        HUB: hub,
        # In whatever data folder that worker has.
        FOLDER: str(order.folder.relative_to(data_dir)),
        LOG: str(order.log.relative_to(data_dir)),
        LOG_BYTES: str(order.log_bytes),
        TIMEOUT: str(order.timeout_seconds),
        GRACE: str(order.grace_seconds),
    }
    config: dict[str, Any] = {
        "Image": image,
        "Hostname": order.hostname,
        "Env": [f"{name}={value}" for name, value in order.environment.items()],
        "Labels": labels,
        "Tty": False,
        "HostConfig": _host_config(order, network="default" if network else "none"),
    }
    if order.group and (name := group_of(order, hub=hub)):
        labels[GROUP] = name
        config["HostConfig"]["NetworkMode"] = name
        endpoint = {"Aliases": list(order.group.names)}
        config["NetworkingConfig"] = {"EndpointsConfig": {name: endpoint}}
    if order.argv and order.after_entrypoint:
        config |= {"Cmd": list(order.argv)}
    elif order.argv:
        # The whole command is the job's, without the entrypoint of the image.
        config |= {"Entrypoint": list(order.argv[:1]), "Cmd": list(order.argv[1:])}
    return config if order.content is None else config | {"WorkingDir": CONTENT}


def _host_config(order: LaunchOrder, *, network: str) -> dict[str, Any]:
    mounts = [_mount(str(bind.source), bind.target, bind.read_only) for bind in order.binds]
    if order.content is not None:
        mounts.append(_mount(str(order.content), CONTENT, False))
    size = f"{max(order.log_bytes * _ENGINE_LOG_FACTOR // 1024, 1)}k"
    return {
        "Memory": order.memory_bytes,
        "MemorySwap": order.memory_bytes,
        "NanoCpus": round(order.cores * _NANO),
        "PidsLimit": MAX_PROCESSES,
        "CapDrop": ["ALL"],
        "CapAdd": list(_CAPABILITIES),
        "SecurityOpt": ["no-new-privileges"],
        "Ulimits": [{"Name": "nofile", "Soft": _max_files(), "Hard": _max_files()}],
        "Init": True,
        "NetworkMode": network,
        "RestartPolicy": {"Name": "no"},
        "LogConfig": {"Type": "json-file", "Config": {"max-size": size, "max-file": "2"}},
        "Mounts": mounts,
        "Devices": [_device(name) for name in order.devices],
    }


def _device(name: str) -> dict[str, str]:
    return {"PathOnHost": name, "PathInContainer": name, "CgroupPermissions": "rwm"}


def _max_files() -> int:
    # An engine that runs in a container cannot give more than its own limit.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MAX_FILES if most == resource.RLIM_INFINITY else min(_MAX_FILES, most)


def _mount(source: str, target: str, read_only: bool) -> dict[str, Any]:  # noqa: FBT001 - as in Bind
    return {"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only}


def observation_of(
    state: dict[str, Any], *, is_drained: bool, timed_out: bool, stopped: bool
) -> Observation:
    """Return the observation; an attempt has exited only when all its output is in the log."""
    status = state["Status"]
    started_at, ended_at = parse_time(state["StartedAt"]), parse_time(state["FinishedAt"])
    if started_at and ended_at:
        # For a short-lived container an engine may note the start after the end.
        ended_at = max(started_at, ended_at)
    if status in {"created", "initialized", "configured"}:
        return Observation(phase=Phase.pending)
    if status not in {"exited", "stopped", "dead"} or not is_drained:
        return Observation(phase=Phase.running, started_at=started_at)
    return Observation(
        phase=Phase.exited,
        started_at=started_at,
        ended_at=ended_at,
        exit_code=state["ExitCode"],
        out_of_memory=bool(state.get("OOMKilled")),
        timed_out=timed_out,
        stopped=stopped,
        reason=state.get("Error") or None,
    )


def parse_time(text: str) -> datetime | None:
    """Parse a time of the engine, which has nanoseconds; add the offset of test mode."""
    if text.startswith(_NEVER):
        return None
    whole, _, fraction = text.rstrip("Z").partition(".")
    micros = fraction[:6].ljust(6, "0")
    return datetime.fromisoformat(f"{whole}.{micros}+00:00") + clock.offset()


def usage_of(stats: dict[str, Any]) -> Usage:
    """Return the usage that the engine measured over a second."""
    now, before = stats["cpu_stats"], stats["precpu_stats"]
    used = now["cpu_usage"]["total_usage"] - before["cpu_usage"]["total_usage"]
    passed = now.get("system_cpu_usage", 0) - before.get("system_cpu_usage", 0)
    cores = now.get("online_cpus") or 1
    return Usage(
        cpu_millicores=round(1000 * cores * used / passed) if passed > 0 else 0,
        memory_bytes=stats["memory_stats"].get("usage", 0),
    )
