"""Sandbox runner: an attempt in namespaces of its own, made by bubblewrap."""

import os
import shutil
import stat
import subprocess
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hublet.core.config.kinds import ImageSource
from hublet.core.dataclasses import dataclass
from hublet.runtime import cgroups, seccomp
from hublet.runtime.attempt_folder import spill_long_variables
from hublet.runtime.errors import CannotRun
from hublet.runtime.images import cache, rootfs
from hublet.runtime.images.pulled_files import PulledFiles, images_folder
from hublet.runtime.networks.membership import NetworkAttachment, Networks, find_obstacle
from hublet.runtime.records import BindMount, LaunchOrder, RunnerCapabilities
from hublet.runtime.sandbox import bubblewrap
from hublet.runtime.sandbox.shim_runner import ProcessSpec, ShimRunner
from hublet.runtime.shim.child import STAGE

NAME = "sandbox"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Range of user ids without accounts; a hub that runs as root gives each job one of them.
_FIRST_USER, _USERS = 0x60000000, 0x1000000
# Folders of the machine that are hidden from jobs.
_HIDDEN = ("/root", "/home", "/run", "/boot", "/lost+found", "/var/run", "/var/tmp")  # noqa: S108
_NO_GROUPS = "Jobs share the network of the machine, because jobs.network is shared."
# The first line that somebody reads who asked for an image.
_HOST_NOTICE = "===== No image {} here: the job runs with the programs of the hub's machine ====="
_LIMITS_WITHOUT_CGROUPS = (("RLIMIT_NPROC", 2 * cgroups.MAX_PROCESSES),)


def sandbox_runner(  # noqa: PLR0913 - each is a setting of its own.
    data_dir: Path,
    *,
    image_map: Sequence[ImageSource],
    network: bool,
    networks: Networks | None = None,
    settings_file: Path | None = None,
    announces_host: bool = False,
    image_cache_bytes: int | None = None,
) -> ShimRunner:
    """Return the runner; with `network` jobs share the network of the machine, and have no other.

    With `announces_host` the log of a job says that this machine's own programs run.
    """
    builder = _SandboxBuilder(
        data_dir=data_dir,
        image_map=tuple(image_map),
        network=network,
        private=_hidden_paths(data_dir, settings_file),
        announces_host=announces_host,
        image_cache_bytes=image_cache_bytes,
    )
    return ShimRunner(
        name=NAME,
        data_dir=data_dir,
        build_spec=builder.build,
        probe_machine=lambda: _probe(network=network, networks=networks),
        prune=builder.prune,
        networks=networks,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _SandboxBuilder:
    data_dir: Path
    image_map: tuple[ImageSource, ...]
    network: bool
    # Paths hidden from jobs whose image is this machine.
    private: tuple[Path, ...]
    announces_host: bool
    # None: as many as were used lately.
    image_cache_bytes: int | None

    def build(self, order: LaunchOrder, attachment: NetworkAttachment | None) -> ProcessSpec:
        if order.group and attachment is None:
            raise CannotRun(f"The job cannot be in a network group. {_NO_GROUPS}")
        program = _find_bubblewrap()
        user = user_of(order.job_id) if os.geteuid() == 0 else 0
        image = self._image(order)
        argv = rootfs.argv_of(order, image)
        view = self._view(order, image, attachment)
        layers = list[str]()
        if image.layers:
            view, layers = _view_of_layers(view, image, folder=order.folder)
        home = order.folder / "home"
        # Not the HOME of the image, which the job could not write to.
        environment = image.defaults.environment | {"HOME": bubblewrap.HOME} | order.environment
        variables = spill_long_variables(environment, home=home, seen_at=bubblewrap.HOME)
        _chown_mounts(view, user=user)
        staged: list[str] = []
        if user:
            view, staged = _stage_sources(view)
        limited = bool(cgroups.own_hierarchies())
        return ProcessSpec(
            argv=argv,
            environment={"PATH": _PATH} | variables,
            cwd=Path("/"),
            bubblewrap=program,
            options=bubblewrap.options(view),
            filter=seccomp.filter_for(),
            user=user,
            stage=staged,
            layers=layers,
            rlimits=() if limited else _LIMITS_WITHOUT_CGROUPS,
            notice=self._notice(order),
        )

    def _notice(self, order: LaunchOrder) -> str:
        is_told = self.announces_host and order.number == 1 and order.image_digest is None
        return _HOST_NOTICE.format(order.image) if is_told else ""

    def _image(self, order: LaunchOrder) -> rootfs.Image:
        if order.image_digest is not None:
            manifest = PulledFiles(self._cache).load_image(order.image_digest)
            if manifest is None:
                raise CannotRun("The image was removed after it was pulled: run the job again.")
            return cache.acquire_manifest(manifest, cache=self._cache, attempt=order.folder)
        target = rootfs.target_of(self.image_map, order.image)
        return cache.acquire_image(target, cache=self._cache, attempt=order.folder)

    def prune(self, attempts: Sequence[Path]) -> None:
        PulledFiles(self._cache).prune()
        cache.prune(
            self._cache,
            image_map=self.image_map,
            attempts=attempts,
            max_bytes=self.image_cache_bytes,
        )

    @property
    def _cache(self) -> Path:
        return images_folder(self.data_dir)

    def _view(
        self, order: LaunchOrder, image: rootfs.Image, attachment: NetworkAttachment | None
    ) -> bubblewrap.SandboxView:
        root = image.root
        for name in ("tmp", "home"):
            (order.folder / name).mkdir(mode=0o700, exist_ok=True)
        own = [
            BindMount(source=order.folder / "tmp", target="/tmp", read_only=False),  # noqa: S108
            BindMount(source=order.folder / "home", target=bubblewrap.HOME, read_only=False),
        ]
        content = order.content
        if attachment:
            own += _name_mounts(attachment)
        elif self.network:
            own += _resolver_mount()
        if content:
            # A copy of its own is writable, as in an image that would be built of it.
            shared = not content.is_relative_to(order.folder)
            own.append(BindMount(source=content, target=bubblewrap.CONTENT, read_only=shared))
        hidden = self.private if root == Path("/") else ()
        return bubblewrap.SandboxView(
            root=root,
            root_source=root,
            hidden=hidden,
            binds=(*own, *order.binds),
            hostname=order.hostname,
            network=self.network or attachment is not None,
            devices=_check_devices(order),
            cwd=bubblewrap.CONTENT if content else image.defaults.cwd or bubblewrap.HOME,
        )


def _view_of_layers(
    view: bubblewrap.SandboxView, image: rootfs.Image, *, folder: Path
) -> tuple[bubblewrap.SandboxView, list[str]]:
    """Return the view of an image in layers, and what its shim mounts.

    What is mounted in the job gets its folder or file in one more layer, of this attempt alone,
    unless the image has it.
    """
    own, root = folder / "mount-points", folder / "root"
    for made in (own, root):
        made.mkdir(exist_ok=True)
        made.chmod(0o755)
    stack = rootfs.stack_of(image)
    binds = tuple(
        replace(
            bind,
            target=rootfs.add_mount_point(own, stack, bind.target, is_folder=bind.source.is_dir()),
        )
        for bind in view.binds
    )
    numbers = [str(number) for number in reversed(range(len(image.layers)))]
    above = str(own) if any(own.iterdir()) else ""
    layers = [str(image.root), ":".join([rootfs.TOP, *numbers]), above, str(root)]
    return replace(view, root=root, root_source=root, binds=binds, is_complete=True), layers


def _hidden_paths(data_dir: Path, settings_file: Path | None) -> tuple[Path, ...]:
    # Both names, where the settings file is a link.
    files = {settings_file, settings_file.resolve()} if settings_file else set[Path]()
    return (data_dir.resolve(), *sorted(files), *map(Path, _HIDDEN))


def _check_devices(order: LaunchOrder) -> tuple[str, ...]:
    for device in order.devices:
        if not Path(device).exists():
            raise CannotRun(f"This machine has no {device}, which the flavor of the job gets.")
    return order.devices


def _resolver_mount() -> list[BindMount]:
    """Mount the resolver configuration of this machine."""
    source = Path("/etc/resolv.conf")
    if not source.exists():
        return []
    return [BindMount(source=source.resolve(), target=str(source), read_only=True)]


def _name_mounts(attachment: NetworkAttachment) -> list[BindMount]:
    """Mount the hosts and resolver files of a job with a network of its own."""
    files = {
        "/etc/hosts": attachment.hosts,
        "/etc/resolv.conf": attachment.resolver,
    }
    return [BindMount(source=file, target=name, read_only=True) for name, file in files.items()]


def user_of(job_id: str) -> int:
    return _FIRST_USER + zlib.crc32(job_id.encode()) % _USERS


def _chown_mounts(view: bubblewrap.SandboxView, *, user: int) -> None:
    """Make the job own its writable mounts, except files with hard links, which others share."""
    if not user:
        return
    for bind in view.binds:
        if bind.read_only:
            continue
        for _, folders, files, fd in os.fwalk(bind.source):
            os.chown(fd, user, user)
            for name in (*folders, *files):
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
                if stat.S_ISLNK(found.st_mode) or found.st_nlink == 1:
                    os.chown(name, user, user, dir_fd=fd, follow_symlinks=False)


def _stage_sources(view: bubblewrap.SandboxView) -> tuple[bubblewrap.SandboxView, list[str]]:
    """Replace each source by its path below STAGE, where the shim binds it for the job's user."""
    sources = [bind.source for bind in view.binds]
    binds = tuple(
        replace(bind, source=Path(STAGE, str(number))) for number, bind in enumerate(view.binds)
    )
    root_source = view.root
    if root_source != Path("/"):
        root_source = Path(STAGE, str(len(sources)))
        sources.append(view.root)
    return replace(view, binds=binds, root_source=root_source), [str(source) for source in sources]


def _find_bubblewrap() -> str:
    if (found := shutil.which("bwrap")) is None:
        raise CannotRun("The sandbox runner needs bubblewrap; install the package bubblewrap.")
    return found


def _probe(*, network: bool, networks: Networks | None) -> RunnerCapabilities:
    try:
        program = _find_bubblewrap()
    except CannotRun as error:
        return RunnerCapabilities(usable=False, sentence=str(error))
    view = bubblewrap.SandboxView(
        root=Path("/"),
        root_source=Path("/"),
        hidden=(),
        binds=(),
        hostname="probe",
        network=network,
        cwd="/",
    )
    tried = subprocess.run(  # noqa: S603 - a fixed program with fixed arguments.
        [program, *bubblewrap.options(view), "true"],
        check=False,
        capture_output=True,
        text=True,
        env={"PATH": _PATH},
    )
    if tried.returncode:
        return RunnerCapabilities(
            usable=False,
            sentence=f"bubblewrap does not work here: {tried.stderr.strip()}. It needs user "
            "namespaces, which the kernel or a container around the hub may forbid.",
        )
    without_groups = _why_no_groups(networks)
    if without_groups and networks and networks.policy.outbound:
        sentence = f"jobs.network is outbound, but that does not work. {without_groups}"
        return RunnerCapabilities(usable=False, sentence=sentence)
    limits = bool(cgroups.own_hierarchies())
    sentence = "Jobs run in namespaces of their own, with a root that they cannot change."
    return RunnerCapabilities(
        usable=True,
        sentence=sentence if limits else f"{sentence} {cgroups.NO_LIMITS}",
        limits=limits,
        volumes=True,
        network_groups=not without_groups,
        without_groups=without_groups,
    )


def _why_no_groups(networks: Networks | None) -> str:
    """Return why there are no network groups; empty when there are."""
    if networks is None:
        return _NO_GROUPS
    reason = find_obstacle(networks.policy)
    return f"Networks for jobs cannot be made: {reason}." if reason else ""
