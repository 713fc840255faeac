"""Checks of the settings themselves."""

from ipaddress import ip_address
from pathlib import Path

from hublet.cli.doctor.findings import Finding, ok, warning
from hublet.cli.environment import variables_in_use
from hublet.core.config import CONFIG_FILE, CONFIG_VARIABLE, Network, Settings

# The greatest private networks are 10.0.0.0/8 and fc00::/7; what is greater holds strangers.
_GREATEST_PRIVATE = {4: 8, 6: 7}


def sources(settings: Settings, *, config: Path | None) -> Finding:
    """Tell where the settings come from; values stay untold, some are secret."""
    variables = variables_in_use()
    file = config or variables.get(CONFIG_VARIABLE) or settings.database.data_dir / CONFIG_FILE
    used = [str(file)] if Path(file).exists() else []
    used += [name for name in variables if name != CONFIG_VARIABLE]
    return ok("settings", f"They come from {', '.join([*used, 'flags and defaults'])}.")


def base_url(settings: Settings) -> Finding:
    url, host = settings.base_url, settings.server.host
    if _is_local(host) or url.startswith("https://"):
        return ok("base URL", f"Links begin with {url}; the hub listens on {host}.")
    return warning(
        "base URL",
        f"The hub listens on {host}, where others reach it, and links begin with {url}.",
        "Put it behind TLS and set HUBLET_BASE_URL to its https:// address.",
    )


def outgoing(settings: Settings) -> Finding:
    networks = settings.outgoing.allow
    shown = ", ".join(map(str, networks))
    if any(_is_everything(network) for network in networks):
        return warning(
            "outgoing",
            f"Webhooks may reach {shown}: more than any private network.",
            "Name only your own networks in outgoing.allow; public addresses need no entry.",
        )
    if settings.server.test_mode:
        return warning(
            "outgoing",
            "Test mode lets webhooks reach this machine itself.",
            "Never use test mode for data that matters.",
        )
    return ok("outgoing", f"Private networks that may be reached: {shown or 'none'}.")


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_everything(network: Network) -> bool:
    return network.prefixlen < _GREATEST_PRIVATE[network.version]
