"""Which hosts are ports of jobs."""

import re
from urllib.parse import urlsplit

from hublet.core.config import Settings
from hublet.jobs.reaching.records import Target

_PORT = re.compile(r":[0-9]{0,5}$")
_LAST_PORT = 65535


class Hosts:
    """The hosts under the domain of jobs; the hub's own host is never one of them."""

    def __init__(self, settings: Settings) -> None:
        domain = settings.jobs_domain.lower()
        self._domain = domain.encode()
        self._below = b"." + self._domain
        self._own = (urlsplit(settings.base_url).hostname or "").encode()
        self._pattern = re.compile(rf"([0-9a-z]{{24}})--([1-9][0-9]{{0,4}})\.{re.escape(domain)}")

    def are_under(self, host: bytes) -> bool:
        """Tell whether a Host header names the domain or anything below it."""
        if self._domain not in (host := host.lower()):
            return False
        name = host.partition(b":")[0].rstrip(b".")
        return name != self._own and (name == self._domain or name.endswith(self._below))

    def target_of(self, host: bytes) -> Target | None:
        """Return what a Host header names; exactly so, with any port or none behind it."""
        name = _PORT.sub("", host.decode("latin-1").lower())
        found = self._pattern.fullmatch(name)
        if found is None or int(found[2]) > _LAST_PORT:
            return None
        return Target(found[1], int(found[2]))
