"""Hardware flavors: those that this hub offers, their size and devices."""

import os

from hublet.core.config import Settings
from hublet.core.config.kinds import FlavorSize
from hublet.jobs.records import Flavor
from hublet.jobs.schemas import Accelerator, Hardware

_GIB = 2**30
_MAX_CORES = 2
_MAX_MEMORY = 16 * _GIB
_KNOWN = {flavor.value: flavor for flavor in Flavor}


def offered_flavors(settings: Settings) -> dict[Flavor, FlavorSize]:
    """Return the sizes of the offered flavors, in the order of the settings; skip unknown names."""
    sizes = settings.jobs.flavors
    if sizes is None:
        sizes = (_default_size(),)
    return {_KNOWN[size.name]: size for size in sizes if size.name in _KNOWN}


def unknown_names(settings: Settings) -> list[str]:
    """Return the names in the settings that are no flavors, for the operator."""
    known = set(Flavor)
    return [size.name for size in settings.jobs.flavors or () if size.name not in known]


def _default_size() -> FlavorSize:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return FlavorSize(
        name=Flavor.cpu_basic,
        cores=min(_MAX_CORES, os.cpu_count() or 1),
        memory_bytes=min(_MAX_MEMORY, memory // 2),
    )


def list_hardware(settings: Settings) -> list[Hardware]:
    return [
        Hardware(
            name=flavor,
            prettyName=_pretty_name(flavor),
            cpu=f"{size.cores:g} vCPU",
            ram=f"{size.memory_bytes / _GIB:.3g} GB",
            accelerator=_accelerator(flavor, size),
            unitCostMicroUSD=0,
            unitCostUSD=0,
            unitLabel="minute",
        )
        for flavor, size in offered_flavors(settings).items()
    ]


def devices_of(flavor: Flavor, settings: Settings) -> tuple[str, ...]:
    """Return the devices of the machine that a job of a flavor sees."""
    size = offered_flavors(settings).get(flavor)
    if size is None or not size.devices:
        return ()
    return (*size.devices, *settings.jobs.shared_devices)


def _accelerator(flavor: Flavor, size: FlavorSize) -> Accelerator | None:
    """Return the accelerator of a flavor; the hub knows the number of devices, not what they are."""
    quantity = size.gpus or len(size.devices)
    if not quantity:
        return None
    model = flavor.split("-")[0].upper()
    return Accelerator(type="gpu", model=model, quantity=str(quantity), vram="?", manufacturer="?")


def _pretty_name(flavor: Flavor) -> str:
    """Return `CPU Basic` for `cpu-basic`."""
    first, *rest = flavor.split("-")
    return " ".join([first.upper(), *(word.capitalize() for word in rest)])
