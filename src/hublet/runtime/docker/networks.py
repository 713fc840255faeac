"""Lookup of names in the network group of a container, as its engine knows them."""

import asyncio
from typing import Any

import aiodocker
import aiohttp

from hublet.runtime.docker import containers
from hublet.runtime.errors import CannotAttach

_TIMEOUT_SECONDS = 10.0
_NOT_FOUND = 404


async def addresses_in_group(container: str, name: str) -> list[str]:
    """Return the addresses of a name in a container's group. Raises CannotAttach."""
    engine = aiodocker.Docker()
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            return await _addresses(engine, container, name)
    except (aiodocker.DockerError, aiohttp.ClientError, OSError) as error:
        raise CannotAttach(f"The engine does not tell who {name} is: {error}") from error
    finally:
        await engine.close()


async def _addresses(engine: aiodocker.Docker, container: str, name: str) -> list[str]:
    details = await engine.containers.container(container).show()
    group = details["Config"]["Labels"].get(containers.GROUP)
    if group is None:
        return []
    network = await (await engine.networks.get(group)).show()
    ends: dict[str, Any] = network.get("Containers") or {}
    # The network has the addresses, and each container its names.
    known = await asyncio.gather(*(_aliases(engine, member, group) for member in ends))
    found = zip(ends.values(), known, strict=True)
    return sorted(end["IPv4Address"].partition("/")[0] for end, names in found if name in names)


async def _aliases(engine: aiodocker.Docker, container: str, group: str) -> list[str]:
    try:
        details = await engine.containers.container(container).show()
    except aiodocker.DockerError as error:
        if error.status == _NOT_FOUND:
            return []
        raise
    end = details["NetworkSettings"]["Networks"].get(group) or {}
    return list(end.get("Aliases") or ())
