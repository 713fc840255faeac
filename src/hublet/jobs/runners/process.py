"""The process runner: an attempt is a plain process of the hub's own user. For one's own machine."""

from pathlib import Path

from hublet.jobs.networks.joining import Place
from hublet.jobs.runners import cgroups
from hublet.jobs.runners.images import Image, argv_of
from hublet.jobs.runners.leftovers import MARK
from hublet.jobs.runners.long_variables import as_files
from hublet.jobs.runners.records import Ability, CannotRun, Order
from hublet.jobs.runners.shims import Launch, ShimRunner

NAME = "process"
_WITHOUT_GROUPS = "Jobs are plain processes here, which share the network of the machine."


def process_runner(data_dir: Path) -> ShimRunner:
    return ShimRunner(name=NAME, data_dir=data_dir, arrange=_arrange, look=_probe, is_plain=True)


def _probe() -> Ability:
    limits = bool(cgroups.here())
    return Ability(
        usable=True,
        sentence="Jobs run as plain processes of the hub's own user: nothing keeps them from "
        "what that user may do." + ("" if limits else f" {cgroups.MISSING}"),
        limits=limits,
        without_groups=_WITHOUT_GROUPS,
    )


def _arrange(order: Order, _place: Place | None) -> Launch:
    if order.binds:
        raise CannotRun("The process runner cannot mount volumes; the sandbox runner can.")
    if order.group:
        raise CannotRun(f"The process runner has no network groups. {_WITHOUT_GROUPS}")
    home = order.folder / "home"
    home.mkdir(exist_ok=True)
    defaults = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home)}
    return Launch(
        argv=argv_of(order, Image(root=Path("/"))),
        environment=defaults
        | as_files(order.environment, home=home, seen_at=str(home))
        | {MARK: str(order.folder)},
        cwd=order.content or home,
    )
