"""Membership in a network: an attempt joins with an address and names, and leaves when it ends."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path

from hublet.core.clock import monotonic
from hublet.core.light_dataclasses import dataclass
from hublet.core.logs import get_logger
from hublet.runtime.errors import NetworkFailed
from hublet.runtime.networks import addresses, firewall, name_resolution, registry, veth
from hublet.runtime.networks.name_resolution import find_endpoints
from hublet.runtime.networks.namespaces import nft, path_of
from hublet.runtime.networks.records import EgressEndpoints, NetworkMember, NetworkPolicy
from hublet.runtime.networks.registry import MemberRegistry
from hublet.runtime.shim.system import write

_RESOLVER_FILE, _RULES_FILE = "resolv.conf", "rules"
_FORWARDING = "/proc/sys/net/ipv4/ip_forward"
_TAG_DIGITS = 6
# How long the hub is taken to be where it was.
_FRESH_SECONDS = 20.0


log = get_logger("jobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAttachment:
    """What an attempt needs to be where it belongs; to be closed when its shim has begun."""

    ends: veth.NamespaceHandles
    hosts: Path
    resolver: Path

    @property
    def inside(self) -> str:
        return path_of(self.ends.inside)

    @property
    def switch(self) -> str:
        return "" if self.ends.switch is None else path_of(self.ends.switch)

    def close(self) -> None:
        self.ends.close()


@dataclass(slots=True, kw_only=True)
class Networks:
    """The networks of one hub on this machine. Everything blocks."""

    data_dir: Path
    policy: NetworkPolicy
    _outside: EgressEndpoints | None = None
    _looked_at: float = float("-inf")
    # Whom the rules of the machine were last set for.
    _rules: EgressEndpoints | None = None

    def join(self, folder: Path, *, names: Sequence[str], group: str | None) -> NetworkAttachment:
        """Give an attempt an address; the first of the names is its own, the group a key.

        Raises NetworkFailed, or OSError.
        """
        outside = self._look_outside()
        with self._ledger.locked():
            if outside and not self._has_set_rules(outside):
                self._set_rules(outside)
            home = self._ledger.home_of(f"alone {folder}" if group is None else f"group {group}")
            home.mkdir(exist_ok=True)
            try:
                self._ledger.drop(home, folder)
                return self._join(home, folder, names=names, is_group=group is not None)
            finally:
                self._publish(home)

    def is_any(self) -> bool:
        """Tell whether there may be somebody in a network; cheap, and never wrong about nobody."""
        return self._ledger.root.exists()

    def leave(self, folder: Path) -> None:
        """Take the names of an attempt away; nothing happens when it has none."""
        if not any(self._ledger.has(home, folder) for home in self._ledger.homes()):
            return
        self._look_outside()
        with self._ledger.locked():
            for home in self._ledger.homes():
                if self._ledger.has(home, folder):
                    self._ledger.drop(home, folder)
                    self._publish(home)
            self._remove_rules()

    def tend(self) -> None:
        """Take away what is left of those who ended unseen, and see to the rules."""
        if not self.is_any():
            return
        outside = self._look_outside()
        with self._ledger.locked():
            for home in self._ledger.homes():
                self._publish(home)
            self._remove_rules()
            if (self._ledger.root / _RULES_FILE).exists():
                with _log_failure():
                    self._set_rules(outside or EgressEndpoints())

    def _join(
        self, home: Path, folder: Path, *, names: Sequence[str], is_group: bool
    ) -> NetworkAttachment:
        others = self._living(home)
        block = others[0].block if others else self._free_block(is_group=is_group)
        taken = [other.address for other in others]
        address = addresses.free_address(block, taken)
        switch = registry.open_switch(others) if others else None
        plan = veth.VethPlan(
            block=block,
            address=address,
            is_group=is_group,
            switch=switch,
            addresses=taken,
            uplink=self._uplink(block) if self._outside else None,
            rules=firewall.job_table(self.policy, self._outside, block=block)
            if self._outside
            else "",
        )
        ends = veth.connect(plan)
        member = NetworkMember(
            folder=folder,
            block=block,
            address=address,
            names=tuple(names),
            switch=ends.number,
            maker=registry.this_process(),
            descriptor=-1 if ends.switch is None else ends.switch,
        )
        self._ledger.add(home, member)
        return NetworkAttachment(
            ends=ends, hosts=home / name_resolution.HOSTS_FILE, resolver=home / _RESOLVER_FILE
        )

    @property
    def _ledger(self) -> MemberRegistry:
        return MemberRegistry.of(self.data_dir)

    @property
    def _tag(self) -> str:
        return hashlib.sha256(os.fsencode(self.data_dir.absolute())).hexdigest()[:_TAG_DIGITS]

    def _look_outside(self) -> EgressEndpoints | None:
        """Return whom to reach; looked for before the lock is taken, since it may take a while."""
        if self.policy.outbound and monotonic() > self._looked_at + _FRESH_SECONDS:
            self._outside, self._looked_at = find_endpoints(self.policy), monotonic()
        return self._outside

    def _uplink(self, block: IPv4Network) -> str:
        return f"{firewall.uplink_prefix(self._tag)}{int(block.network_address) & 0xFFFFFF:06x}"

    def _living(self, home: Path) -> list[NetworkMember]:
        members = self._ledger.members(home)
        for member in members:
            if not registry.is_alive(member):
                self._ledger.drop(home, member.folder)
        return [member for member in members if self._ledger.has(home, member.folder)]

    def _free_block(self, *, is_group: bool) -> IPv4Network:
        used = [m.block for home in self._ledger.homes() for m in self._ledger.members(home)]
        taken = [*used, *addresses.routed_networks()]
        return addresses.free_block(self.policy.range, is_group=is_group, taken=taken)

    def _publish(self, home: Path) -> None:
        """Tell those in a network who is in it; nobody needs to know when nobody is."""
        if members := self._living(home):
            name_resolution.rewrite_in_place(
                home / name_resolution.HOSTS_FILE,
                name_resolution.hosts_text(members, self._outside),
            )
            name_resolution.rewrite_in_place(
                home / _RESOLVER_FILE, name_resolution.resolver_text(self._outside)
            )
        else:
            self._ledger.forget(home)

    def _has_set_rules(self, outside: EgressEndpoints) -> bool:
        """Tell whether they are as this process set them; if somebody else did not flush them."""
        return self._rules == outside and (self._ledger.root / _RULES_FILE).exists()

    def _set_rules(self, outside: EgressEndpoints) -> None:
        # Noted before, so that they are removed even if this process ends in between.
        (self._ledger.root / _RULES_FILE).touch()
        nft(firewall.machine_table(self._tag, self.policy, outside))
        self._rules = outside
        if self.policy.outbound and not write(_FORWARDING, "1"):
            raise NetworkFailed(f"{_FORWARDING} cannot be set to 1")

    def _remove_rules(self) -> None:
        if not self._ledger.homes() and (self._ledger.root / _RULES_FILE).exists():
            with _log_failure():
                nft(firewall.removal_of_table(self._tag))
                (self._ledger.root / _RULES_FILE).unlink()


@contextmanager
def _log_failure() -> Iterator[None]:
    """Go on when the rules of the machine cannot be changed: they are seen to again soon."""
    try:
        yield
    except NetworkFailed as error:
        log.warning("the rules for networks of jobs could not be changed", reason=str(error))
