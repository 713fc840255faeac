"""Membership in a network: an attempt joins with an address and names, and leaves when it ends.

A launch uses `allocated_network`; `find_obstacle` tells whether this machine can have networks.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path

from hublet.core.clock import monotonic
from hublet.core.dataclasses import dataclass
from hublet.core.logs import get_logger
from hublet.runtime.attempt_folder import read_status
from hublet.runtime.errors import CannotRun, CannotRunYet, NetworkFailed
from hublet.runtime.networks import addresses, firewall, name_resolution, registry, veth
from hublet.runtime.networks.name_resolution import find_endpoints
from hublet.runtime.networks.namespaces import (
    create_namespace,
    find_program,
    nft,
    path_of,
    run_in_thread,
)
from hublet.runtime.networks.records import EgressEndpoints, NetworkMember, NetworkPolicy
from hublet.runtime.networks.registry import MemberRegistry
from hublet.runtime.records import LaunchOrder
from hublet.runtime.shim.system import write

_RESOLVER_FILE, _RULES_FILE = "resolv.conf", "rules"
_FORWARDING = "/proc/sys/net/ipv4/ip_forward"
_TAG_DIGITS = 6
_NEEDS_ROOT = "it needs a hub that runs as root"
# How long the resolved addresses of the hub and of the name servers are used.
_FRESH_SECONDS = 20.0

log = get_logger("jobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAttachment:
    """Namespaces and name files of an attempt; the hub closes it once the shim holds the namespaces."""

    handles: veth.NamespaceHandles
    hosts: Path
    resolver: Path

    @property
    def namespace_path(self) -> str:
        return path_of(self.handles.job)

    @property
    def switch_path(self) -> str:
        return "" if self.handles.switch is None else path_of(self.handles.switch)

    def close(self) -> None:
        self.handles.close()


@dataclass(slots=True, kw_only=True)
class Networks:
    """The networks of one hub on this machine. Everything blocks."""

    data_dir: Path
    policy: NetworkPolicy
    _endpoints: EgressEndpoints | None = None
    _resolved_at: float = float("-inf")
    # The endpoints that the firewall of the machine was last set for.
    _rules: EgressEndpoints | None = None

    def join(self, folder: Path, *, names: Sequence[str], group: str | None) -> NetworkAttachment:
        """Give an attempt an address in the network of its group, or in one of its own.

        The first of the names is the attempt's own. Raises NetworkFailed, or OSError.
        """
        endpoints = self._refresh_endpoints()
        with self._registry.locked():
            if endpoints and not self._has_current_rules(endpoints):
                self._set_rules(endpoints)
            network_dir = self._registry.dir_of(
                f"alone {folder}" if group is None else f"group {group}"
            )
            network_dir.mkdir(exist_ok=True)
            try:
                self._registry.remove(network_dir, folder)
                return self._join(network_dir, folder, names=names, is_group=group is not None)
            finally:
                self._write_name_files(network_dir)

    def has_networks(self) -> bool:
        """Tell whether any network may have members; cheap, and False only if there are none."""
        return self._registry.root.exists()

    def leave(self, folder: Path) -> None:
        """Remove an attempt from its network; nothing happens when it is in none."""
        if not any(
            self._registry.has(network_dir, folder) for network_dir in self._registry.network_dirs()
        ):
            return
        self._refresh_endpoints()
        with self._registry.locked():
            for network_dir in self._registry.network_dirs():
                if self._registry.has(network_dir, folder):
                    self._registry.remove(network_dir, folder)
                    self._write_name_files(network_dir)
            self._remove_rules()

    def clean_up(self) -> None:
        """Remove members that ended unnoticed, and set or remove the firewall of the machine."""
        if not self.has_networks():
            return
        endpoints = self._refresh_endpoints()
        with self._registry.locked():
            for network_dir in self._registry.network_dirs():
                self._write_name_files(network_dir)
            self._remove_rules()
            if (self._registry.root / _RULES_FILE).exists():
                with _log_failure():
                    self._set_rules(endpoints or EgressEndpoints())

    def _join(
        self, network_dir: Path, folder: Path, *, names: Sequence[str], is_group: bool
    ) -> NetworkAttachment:
        present = self._live_members(network_dir)
        block = present[0].block if present else self._free_block(is_group=is_group)
        taken = [member.address for member in present]
        address = addresses.free_address(block, taken)
        switch = registry.open_switch(present) if present else None
        plan = veth.VethPlan(
            block=block,
            address=address,
            is_group=is_group,
            switch=switch,
            addresses=taken,
            uplink=self._uplink(block) if self._endpoints else None,
            rules=firewall.job_table(self.policy, self._endpoints, block=block)
            if self._endpoints
            else "",
        )
        handles = veth.connect(plan)
        member = NetworkMember(
            folder=folder,
            block=block,
            address=address,
            names=tuple(names),
            switch=handles.switch_number,
            maker=registry.current_process(),
            descriptor=-1 if handles.switch is None else handles.switch,
        )
        self._registry.add(network_dir, member)
        return NetworkAttachment(
            handles=handles,
            hosts=network_dir / name_resolution.HOSTS_FILE,
            resolver=network_dir / _RESOLVER_FILE,
        )

    @property
    def _registry(self) -> MemberRegistry:
        return MemberRegistry.of(self.data_dir)

    @property
    def _tag(self) -> str:
        return hashlib.sha256(os.fsencode(self.data_dir.absolute())).hexdigest()[:_TAG_DIGITS]

    def _refresh_endpoints(self) -> EgressEndpoints | None:
        """Return the endpoints open to jobs; resolved before the lock is taken, since it may be slow."""
        if self.policy.outbound and monotonic() > self._resolved_at + _FRESH_SECONDS:
            self._endpoints, self._resolved_at = find_endpoints(self.policy), monotonic()
        return self._endpoints

    def _uplink(self, block: IPv4Network) -> str:
        return f"{firewall.uplink_prefix(self._tag)}{int(block.network_address) & 0xFFFFFF:06x}"

    def _live_members(self, network_dir: Path) -> list[NetworkMember]:
        members = self._registry.members(network_dir)
        for member in members:
            if not registry.is_alive(member):
                self._registry.remove(network_dir, member.folder)
        return [member for member in members if self._registry.has(network_dir, member.folder)]

    def _free_block(self, *, is_group: bool) -> IPv4Network:
        used = [
            m.block
            for network_dir in self._registry.network_dirs()
            for m in self._registry.members(network_dir)
        ]
        taken = [*used, *addresses.routed_networks()]
        return addresses.free_block(self.policy.range, is_group=is_group, taken=taken)

    def _write_name_files(self, network_dir: Path) -> None:
        """Write the hosts and resolver files of a network; remove a network without members."""
        if members := self._live_members(network_dir):
            name_resolution.rewrite_in_place(
                network_dir / name_resolution.HOSTS_FILE,
                name_resolution.hosts_text(members, self._endpoints),
            )
            name_resolution.rewrite_in_place(
                network_dir / _RESOLVER_FILE, name_resolution.resolver_text(self._endpoints)
            )
        else:
            self._registry.remove_network(network_dir)

    def _has_current_rules(self, endpoints: EgressEndpoints) -> bool:
        """Tell whether this process has set these rules; a flush by others is not noticed."""
        return self._rules == endpoints and (self._registry.root / _RULES_FILE).exists()

    def _set_rules(self, endpoints: EgressEndpoints) -> None:
        # The file comes first, so that the rules are removed even if this process ends here.
        (self._registry.root / _RULES_FILE).touch()
        nft(firewall.machine_table(self._tag, self.policy, endpoints))
        self._rules = endpoints
        if self.policy.outbound and not write(_FORWARDING, "1"):
            raise NetworkFailed(f"{_FORWARDING} cannot be set to 1")

    def _remove_rules(self) -> None:
        if not self._registry.network_dirs() and (self._registry.root / _RULES_FILE).exists():
            with _log_failure():
                nft(firewall.removal_of_table(self._tag))
                (self._registry.root / _RULES_FILE).unlink()


@contextmanager
def _log_failure() -> Iterator[None]:
    """Log that the rules of the machine could not be changed; the next clean-up tries again."""
    try:
        yield
    except NetworkFailed as error:
        log.warning("the rules for networks of jobs could not be changed", reason=str(error))


@contextmanager
def allocated_network(
    networks: Networks | None, order: LaunchOrder
) -> Iterator[NetworkAttachment | None]:
    """Hold a network for an attempt until its shim does; None: it needs no network of its own.

    An attempt that does not start leaves the network. Raises CannotRun or CannotRunYet.
    """
    is_needed = networks is not None and (order.group or networks.policy.outbound)
    if networks is None or not is_needed:
        yield None
        return
    network = _join(networks, order)
    try:
        yield network
    except BaseException:
        # A shim that did not respond in time may have started the attempt all the same.
        if read_status(order.folder) is None:
            networks.leave(order.folder)
        raise
    finally:
        network.close()


def _join(networks: Networks, order: LaunchOrder) -> NetworkAttachment:
    group = order.group
    names = (order.hostname, *(group.names if group else ()))
    try:
        return networks.join(order.folder, names=names, group=group.key if group else None)
    except (NetworkFailed, OSError) as error:
        if (reason := find_obstacle(networks.policy)) is not None:
            raise CannotRun(f"There are no networks for jobs here: {reason}.") from error
        raise CannotRunYet(f"Its network could not be made: {error}.") from error


def find_obstacle(policy: NetworkPolicy) -> str | None:
    """Return why this machine cannot have networks for jobs; None: it can. Blocks."""
    if os.geteuid():
        return _NEEDS_ROOT
    try:
        find_program("ip")
        if policy.outbound:
            find_program("nft")
        run_in_thread(lambda: _try_network(policy))
    except (NetworkFailed, OSError) as error:
        return str(error)
    return None


def _try_network(policy: NetworkPolicy) -> None:
    block = IPv4Network((policy.range.network_address, 30))
    plan = veth.VethPlan(
        block=block,
        address=addresses.free_address(block, ()),
        is_group=True,
        rules=firewall.job_table(policy, EgressEndpoints(), block=block) if policy.outbound else "",
    )
    veth.connect(plan).close()
    if policy.outbound:
        # From here on this thread is in a namespace of its own, so the rules touch nothing else.
        os.close(create_namespace())
        nft(firewall.machine_table("trial", policy, EgressEndpoints()))
