"""Checks of the settings and the machine: URL, networks, data folder, git, mail, runner, clock."""

import asyncio
import os
import shutil
import stat
import subprocess
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from hublet.core.clock import format_duration
from hublet.core.config import VARIABLE, Network, Settings
from hublet.core.config.kinds import ImageSource
from hublet.core.dataclasses import dataclass
from hublet.core.mail import MailUnavailable, mail_folder, open_transport
from hublet.core.outgoing import OutgoingFailed
from hublet.core.startup import CannotStart, check_writable
from hublet.jobs import hardware
from hublet.repos.packs.cache_usage import cached_sizes
from hublet.runtime.images import rootfs
from hublet.runtime.images.pulled_files import images_folder
from hublet.runtime.images.registry_client import RegistryTransport
from hublet.runtime.images.rootfs import HOST
from hublet.runtime.images.sources import image_map, named_registries
from hublet.runtime.records import Runner, RunnerCapabilities
from hublet.runtime.sandbox import runner
from hublet.runtime.supervisor.runner_selection import choose_runner
from hublet.storage.object_store import has_shared_store, probe_store

# The largest private networks are 10.0.0.0/8 and fc00::/7; a larger one has public addresses.
_SHORTEST_PRIVATE_PREFIX = {4: 8, 6: 7}

_FOLDER = "data folder"
_MEGABYTE = 1_000_000
_FULL_BYTES = 100 * _MEGABYTE
_NEARLY_FULL_BYTES = 1000 * _MEGABYTE

_STORE = "object storage"
# S3 refuses requests that are a quarter of an hour off.
_SKEW = timedelta(minutes=1)

_PACK_CACHE = "pack cache"
# Evictions follow what was fetched, a little later.
_OVERFULL = 1.1

_GIT = "git"
_GIT_SECONDS = 10.0

_MAIL = "mail"

_IMAGES = "images"
_LAYERS = "layers"
_REGISTRIES = "registries"
_REGISTRY_SECONDS = 5.0
_REGISTRY_ADVICE = (
    "Jobs use what is on this machine of its images, and fail without; see jobs.registries."
)

_JOBS = "jobs"
_JOBS_ADVICE = "Until then jobs are refused, or wait."
_POLICIES_ADVICE = "Use a network plugin that enforces policies, such as Calico or Cilium."
_SHARED_NETWORK = "They reach everything that this machine does, its loopback included."
_SHARED_NETWORK_ADVICE = "Set jobs.network to outbound, or to none."

_CLOCK = "clock"
# No row is older than this program.
_FIRST_YEAR = 2026
_LAST_YEAR = 2100
_TOLERANCE = timedelta(seconds=60)


class FindingStatus(StrEnum):
    ok = "ok"
    warning = "warning"
    problem = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    check: str
    status: FindingStatus
    # A sentence; so is the advice, if there is one.
    found: str
    advice: str | None = None


def ok(check: str, found: str) -> Finding:
    return Finding(check=check, status=FindingStatus.ok, found=found)


def warning(check: str, found: str, advice: str) -> Finding:
    return Finding(check=check, status=FindingStatus.warning, found=found, advice=advice)


def problem(check: str, found: str, advice: str) -> Finding:
    return Finding(check=check, status=FindingStatus.problem, found=found, advice=advice)


def check_sources(settings: Settings) -> Finding:
    """Report where the settings come from, without their values, as some are secret."""
    used = [] if settings.file is None else [str(settings.file)]
    sources = settings.origins.values()
    used += sorted(each.removeprefix(VARIABLE) for each in sources if each.startswith(VARIABLE))
    return ok("settings", f"They come from {', '.join([*used, 'flags and defaults'])}.")


def check_base_url(settings: Settings) -> Finding:
    url, host = settings.base_url, settings.server.host
    if _is_local(host) or url.startswith("https://"):
        return ok("base URL", f"Links begin with {url}; the hub listens on {host}.")
    return warning(
        "base URL",
        f"The hub listens on {host}, where others reach it, and links begin with {url}.",
        "Put it behind TLS and set HUBLET_BASE_URL to its https:// address.",
    )


def check_outgoing(settings: Settings) -> Finding:
    networks = settings.outgoing.allow
    listed = ", ".join(map(str, networks))
    if any(_exceeds_private(network) for network in networks):
        return warning(
            "outgoing",
            f"Webhooks may reach {listed}: more than any private network.",
            "Name only your own networks in outgoing.allow; public addresses need no entry.",
        )
    if settings.server.test_mode:
        return warning(
            "outgoing",
            "Test mode lets webhooks reach this machine itself.",
            "Never use test mode for data that matters.",
        )
    return ok("outgoing", f"Private networks that may be reached: {listed or 'none'}.")


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _exceeds_private(network: Network) -> bool:
    return network.prefixlen < _SHORTEST_PRIVATE_PREFIX[network.version]


def check_folder(folder: Path) -> Finding:
    if not folder.exists():
        return warning(
            _FOLDER,
            f"{folder} does not exist.",
            "The first hublet serve makes it; or is it a typo?",
        )
    try:
        check_writable(folder)
    except CannotStart as error:
        return problem(_FOLDER, str(error), "Without it the hub does not start.")
    return _check_mode(folder) or _check_space(folder, free=shutil.disk_usage(folder).free)


def _check_mode(folder: Path) -> Finding | None:
    mode = stat.S_IMODE(folder.stat().st_mode)
    if not mode & (stat.S_IRWXG | stat.S_IRWXO):
        return None
    return warning(
        _FOLDER,
        f"{folder} is open to other users (mode {mode:04o}).",
        f"The next hublet serve closes it. Or run: chmod 700 {folder}",
    )


def _check_space(folder: Path, *, free: int) -> Finding:
    found = f"{folder} can be written and has {free // _MEGABYTE:,} MB left."
    if free < _FULL_BYTES:
        return problem(_FOLDER, found, "Make room: a full disk stops every change.")
    if free < _NEARLY_FULL_BYTES:
        return warning(_FOLDER, found, "Make room soon.")
    return ok(_FOLDER, found)


def check_store(settings: Settings) -> list[Finding]:
    """Put, read and delete an object where a shared store is configured; it may take seconds."""
    if settings.storage.url is None:
        return []
    shown = settings.storage.url.partition("?")[0]
    try:
        skew = probe_store(settings)
    except CannotStart as error:
        return [problem(_STORE, str(error), "Until then nothing can be uploaded or downloaded.")]
    if skew is not None and abs(skew) > _SKEW:
        found = f"{shown} works, but its clock differs by {format_duration(abs(skew))}."
        return [warning(_STORE, found, "Correct the clock of this machine, or of the storage.")]
    return [ok(_STORE, f"{shown}: an object was put, read and deleted.")]


def check_pack_cache(settings: Settings) -> list[Finding]:
    """Measure this node's cache of packs, where packs lie in a shared store."""
    if not has_shared_store(settings):
        return []
    sizes = cached_sizes(settings.database.data_dir)
    used, room = sum(sizes.values()), settings.storage.cache_bytes
    found = f"{len(sizes)} repositories with {used // _MEGABYTE:,} of {room // _MEGABYTE:,} MB."
    if used > room * _OVERFULL:
        advice = "What is in use stays: raise storage.cache_bytes if this node serves that many."
        return [warning(_PACK_CACHE, found, advice)]
    return [ok(_PACK_CACHE, found)]


def check_git() -> Finding:
    """Check for git, which serves clones and pushes; everything else works without it."""
    path = shutil.which("git")
    if path is None:
        return warning(
            _GIT,
            "It is not installed: clones and pushes are answered with 503.",
            "Install git, and restart the hub.",
        )
    try:
        version = subprocess.run(  # noqa: S603 - git itself, found in the path
            [path, "--version"], capture_output=True, text=True, timeout=_GIT_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return problem(_GIT, f"{path} does not run: {error}.", "Install git anew.")
    return ok(_GIT, f"{version.stdout.strip()} at {path}.")


async def check_mail(settings: Settings) -> Finding:
    """Check the mail server, if there is one: connect and log in, without sending a mail."""
    if settings.mail.smtp_url is None:
        return ok(_MAIL, f"No mail server is set; mails are files in {mail_folder(settings)}.")
    server = _url_without_login(settings.mail.smtp_url)
    try:
        async with open_transport(settings) as transport:
            await transport.check()
    except MailUnavailable as error:
        return problem(
            _MAIL,
            f"{server} cannot be used: {error}",
            "Correct mail.smtp_url or the server; mails wait for three days.",
        )
    return ok(_MAIL, f"{server} takes mails from {settings.mail.sender}.")


def silent_mail_server(settings: Settings) -> Finding:
    server = _url_without_login(settings.mail.smtp_url or "")
    return warning(_MAIL, f"{server} did not answer soon.", "hublet doctor waits longer.")


def _url_without_login(url: str) -> str:
    """Return the URL without the login in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


async def check_jobs(settings: Settings, *, is_thorough: bool = False) -> Finding:
    """Check which runner is chosen and whether it is usable, without running a job.

    In a cluster, a thorough check starts two pods to see whether it enforces network policies.
    """
    unknown = hardware.unknown_names(settings)
    if unknown:
        found = f"jobs.flavors has names that are no flavors: {', '.join(unknown)}."
        return warning(_JOBS, found, "Correct them; GET /api/jobs/hardware shows what is offered.")
    choice = await choose_runner(settings)
    if choice.runner is None or not choice.capabilities.usable:
        return warning(_JOBS, f"No job can be run. {choice.capabilities.sentence}", _JOBS_ADVICE)
    found = f"The runner is {choice.runner.name}. {choice.capabilities.sentence}"
    if settings.jobs.network == "shared" and choice.runner.name == runner.NAME:
        return warning(_JOBS, f"{found} {_SHARED_NETWORK}", _SHARED_NETWORK_ADVICE)
    if is_thorough and settings.jobs.runner == "kubernetes":
        return await _check_policies(choice.runner, found)
    groups = (
        "" if choice.capabilities.network_groups else f" {_missing_groups(choice.capabilities)}"
    )
    return ok(_JOBS, f"{found}{groups}")


async def _check_policies(chosen: Runner, found: str) -> Finding:
    # Its library is an extra, and costs a while to load.
    from hublet.runtime.kubernetes.network_probe import check_policies  # noqa: PLC0415 - as above
    from hublet.runtime.kubernetes.runner import KubernetesRunner  # noqa: PLC0415 - as above

    assert isinstance(chosen, KubernetesRunner)  # noqa: S101 - the settings name it.
    try:
        is_enforced, sentence = await check_policies(chosen)
    finally:
        await chosen.close()
    if is_enforced:
        return ok(_JOBS, f"{found} {sentence}")
    return warning(_JOBS, f"{found} {sentence}", _POLICIES_ADVICE)


def _missing_groups(ability: RunnerCapabilities) -> str:
    return f"There are no network groups. {ability.without_groups}"


def check_images(settings: Settings) -> Finding:
    """Report how the images of jobs run."""
    if settings.jobs.runner in {"docker", "kubernetes"}:
        return ok(_IMAGES, f"The engine has or pulls them.{_renamed_images(settings)}")
    if settings.jobs.runner == "process":
        return ok(_IMAGES, "Every image is this machine: names of images do not matter.")
    sources = image_map(settings)
    if settings.jobs.registries:
        mapped = f"{_format_sources(settings.jobs.images)}. " if settings.jobs.images else ""
        names = ", ".join(rule.pattern for rule in settings.jobs.registries)
        return ok(_IMAGES, f"{mapped}Others are pulled from this hub and from {names}.")
    if not sources:
        return warning(
            _IMAGES,
            "None is mapped, and this machine's own programs are forbidden: jobs are refused.",
            "Map names of images in jobs.images, or set jobs.host_programs to true.",
        )
    if not settings.jobs.images:
        return ok(_IMAGES, "Every image runs with this machine's own programs; none is mapped.")
    return ok(_IMAGES, f"{_format_sources(sources)}. Others are refused.")


def check_layers(settings: Settings) -> list[Finding]:
    """Report how jobs share the layers of images, where the hub unpacks them. Blocks."""
    if settings.jobs.runner in {"docker", "kubernetes", "process"}:
        return []
    data_dir = settings.database.data_dir
    folder = next((each for each in (images_folder(data_dir), data_dir) if each.is_dir()), None)
    if folder is None or not os.access(folder, os.W_OK):
        return []
    if (obstacle := rootfs.find_overlay_obstacle(folder.resolve())) is None:
        return [ok(_LAYERS, "Jobs share the layers of images as an overlay.")]
    return [ok(_LAYERS, f"Jobs share images by hard links, for there is no overlay; {obstacle}.")]


async def check_registries(settings: Settings) -> list[Finding]:
    """Ask each registry and mirror that is named whether it answers; it may take seconds."""
    if settings.jobs.runner not in {"auto", "sandbox"}:
        return []
    return [await _check_registry(settings, *each) for each in named_registries(settings)]


async def _check_registry(settings: Settings, name: str, url: str) -> Finding:
    transport = RegistryTransport(settings)
    try:
        async with (
            asyncio.timeout(_REGISTRY_SECONDS),
            transport.stream("GET", url, {}, is_named=True) as response,
        ):
            status = response.status
    except (OutgoingFailed, TimeoutError) as error:
        why = str(error) or f"it did not answer within {_REGISTRY_SECONDS:g} seconds."
        return warning(_REGISTRIES, f"{name} does not answer: {why}", _REGISTRY_ADVICE)
    finally:
        await transport.close()
    if status in {200, 401}:
        return ok(_REGISTRIES, f"{name} answers.")
    return warning(
        _REGISTRIES, f"{name} answers with status {status}, as no registry does.", _REGISTRY_ADVICE
    )


def _renamed_images(settings: Settings) -> str:
    return f" {_format_sources(settings.jobs.images)}." if settings.jobs.images else ""


def _format_sources(sources: Sequence[ImageSource]) -> str:
    """Return the images and what they are here; the first that fits counts."""
    targets = ((each.pattern, each.target) for each in sources)
    return ", ".join(
        f"{pattern} is {'this machine' if target == HOST else target}"
        for pattern, target in targets
    )


def check_clock(*, now: datetime, newest: datetime | None, test_mode: bool) -> Finding:
    """Compare the clock with the newest row of the database."""
    time = f"It is {now:%Y-%m-%d %H:%M:%S} UTC"
    if not _FIRST_YEAR <= now.year < _LAST_YEAR:
        return problem(_CLOCK, f"{time}, says this machine.", "Set its clock, best by NTP.")
    if newest is not None and newest > now + _TOLERANCE:
        return _clock_behind(
            f"{time}, and the newest row is from {format_duration(newest - now)} later.",
            test_mode=test_mode,
        )
    if test_mode:
        return warning(
            _CLOCK,
            f"{time}; in test mode anybody can move the hub's clock.",
            "Never use test mode for data that matters.",
        )
    return ok(_CLOCK, f"{time}.")


def _clock_behind(found: str, *, test_mode: bool) -> Finding:
    if test_mode:
        return warning(
            _CLOCK, found, "Somebody moved the clock in test mode; a restart moves it back."
        )
    return problem(_CLOCK, found, "Set this machine's clock, best by NTP; else tokens expire late.")
