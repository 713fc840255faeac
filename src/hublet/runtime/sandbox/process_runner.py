"""Process runner: an attempt is a plain process of the hub's own user, without isolation."""

from pathlib import Path

from hublet.runtime import cgroups
from hublet.runtime.attempt_folder import spill_long_variables
from hublet.runtime.attempt_processes import ATTEMPT_VARIABLE
from hublet.runtime.errors import CannotRun
from hublet.runtime.images.rootfs import Image, argv_of
from hublet.runtime.networks.membership import NetworkAttachment
from hublet.runtime.records import LaunchOrder, RunnerCapabilities
from hublet.runtime.sandbox.shim_runner import ProcessSpec, ShimRunner

NAME = "process"
_WITHOUT_GROUPS = "Jobs are plain processes here, which share the network of the machine."


def process_runner(data_dir: Path) -> ShimRunner:
    return ShimRunner(
        name=NAME, data_dir=data_dir, build_spec=_process_spec, probe_machine=_probe, is_plain=True
    )


def _probe() -> RunnerCapabilities:
    limits = bool(cgroups.own_hierarchies())
    return RunnerCapabilities(
        usable=True,
        sentence="Jobs run as plain processes of the hub's own user: nothing keeps them from "
        "what that user may do." + ("" if limits else f" {cgroups.NO_LIMITS}"),
        limits=limits,
        without_groups=_WITHOUT_GROUPS,
    )


def _process_spec(order: LaunchOrder, _network: NetworkAttachment | None) -> ProcessSpec:
    if order.binds:
        raise CannotRun("The process runner cannot mount volumes; the sandbox runner can.")
    if order.group:
        raise CannotRun(f"The process runner has no network groups. {_WITHOUT_GROUPS}")
    home = order.folder / "home"
    home.mkdir(exist_ok=True)
    defaults = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home)}
    return ProcessSpec(
        argv=argv_of(order, Image(root=Path("/"))),
        environment=defaults
        | spill_long_variables(order.environment, home=home, seen_at=str(home))
        | {ATTEMPT_VARIABLE: str(order.folder)},
        cwd=order.content or home,
    )
