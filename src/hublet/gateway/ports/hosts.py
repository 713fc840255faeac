"""Hosts of jobs: which names lie under their domain, and which job and port a name means."""

import re
from urllib.parse import urlsplit

from hublet.core.config import Settings
from hublet.gateway.records import JobPort

_PORT_SUFFIX = re.compile(r":[0-9]{0,5}$")
_LAST_PORT = 65535


class PortHosts:
    """Host names under the domain of jobs; the hub's own host is never one of them."""

    def __init__(self, settings: Settings) -> None:
        domain = settings.jobs_domain.lower()
        self._domain = domain.encode()
        self._suffix = b"." + self._domain
        self._hub_host = (urlsplit(settings.base_url).hostname or "").encode()
        self._pattern = re.compile(rf"([0-9a-z]{{24}})--([1-9][0-9]{{0,4}})\.{re.escape(domain)}")

    def contains(self, host: bytes) -> bool:
        """Tell whether a Host header names the domain or anything below it."""
        if self._domain not in (host := host.lower()):
            return False
        name = host.partition(b":")[0].rstrip(b".")
        return name != self._hub_host and (name == self._domain or name.endswith(self._suffix))

    def target_of(self, host: bytes) -> JobPort | None:
        """Return the job and port of a Host header, which may end with a port; None: it names none."""
        name = _PORT_SUFFIX.sub("", host.decode("latin-1").lower())
        found = self._pattern.fullmatch(name)
        if found is None or int(found[2]) > _LAST_PORT:
            return None
        return JobPort(found[1], int(found[2]))
