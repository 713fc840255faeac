"""Firewall of jobs: what they may send where, as nftables rules.

Two tables hold the same rules. One is in the namespace of each job, where only the hub can change
it: it stays when the rules of the machine are loaded anew. The other is on the machine, which
alone knows all of its own addresses, and refuses every packet of a job to itself.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, collapse_addresses

from hublet.core.outgoing.networks import Tier, is_subnet, networks_of
from hublet.runtime.networks.addresses import gateway_of
from hublet.runtime.networks.records import EgressEndpoints, NetworkPolicy

_REFUSE = "reject with icmpx type admin-prohibited"
# No job has an IPv6 address, so a packet with one is never legitimate.
_ONLY_IPV4 = "meta nfproto ipv6 drop"


def machine_table(tag: str, policy: NetworkPolicy, endpoints: EgressEndpoints) -> str:
    """Return the table of the machine; it replaces the one that may exist."""
    ours = f'"{uplink_prefix(tag)}*"'
    sources = f"ip saddr != {policy.range} drop"
    is_open = policy.outbound
    chains = [
        _chain("arriving", [f"iifname {ours} jump home"], hook="filter hook input"),
        _chain("home", [_ONLY_IPV4, *(_accept_endpoints(endpoints) if is_open else ()), _REFUSE]),
        _chain(
            "passing",
            [f"iifname {ours} jump leaving", f"oifname {ours} jump coming"],
            hook="filter hook forward",
        ),
        _chain(
            "leaving",
            [f"oifname {ours} {_REFUSE}", _ONLY_IPV4, sources]
            + (
                [*_accept_endpoints(endpoints), *_refuse_private(policy), "accept"]
                if is_open
                else [_REFUSE]
            ),
        ),
        _chain("coming", ["ct state established,related accept", "drop"]),
        _chain(
            "masking",
            [f"ip saddr {policy.range} oifname != {ours} masquerade"],
            hook="nat hook postrouting",
        ),
    ]
    return removal_of_table(tag) + f"table {_table_name(tag)} {{\n{''.join(chains)}}}\n"


def job_table(policy: NetworkPolicy, endpoints: EgressEndpoints, *, block: IPv4Network) -> str:
    """Return the table of one job's namespace."""
    rules = [
        'oifname "lo" accept',
        _ONLY_IPV4,
        *_accept_endpoints(endpoints),
        f"ip daddr {gateway_of(block)} {_REFUSE}",
        f"ip daddr {block} accept",
        *_refuse_private(policy),
    ]
    return f"table inet hublet {{\n{_chain('leaving', rules, hook='filter hook output')}}}\n"


def removal_of_table(tag: str) -> str:
    """Return commands that remove the table of the machine, whether it exists or not."""
    return f"table {_table_name(tag)} {{}}\ndelete table {_table_name(tag)}\n"


def uplink_prefix(tag: str) -> str:
    """Return the prefix of this hub's interfaces on the machine."""
    return f"h{tag}"


def _table_name(tag: str) -> str:
    return f"inet hublet_{tag}"


def _accept_endpoints(endpoints: EgressEndpoints) -> list[str]:
    """Return rules that open the hub and the name servers, wherever they are."""
    rules: list[str] = []
    if endpoints.hub_addresses and endpoints.hub_port:
        there = f"ip daddr {_set(endpoints.hub_addresses)}"
        rules.append(f"{there} tcp dport {endpoints.hub_port} accept")
    if endpoints.nameservers:
        there = f"ip daddr {_set(endpoints.nameservers)}"
        rules += [f"{there} {protocol} dport 53 accept" for protocol in ("udp", "tcp")]
    return rules


def _refuse_private(policy: NetworkPolicy) -> list[str]:
    """Return rules that refuse what is not public; an allowed range never opens a forbidden one."""
    forbidden, private = _ipv4_networks(Tier.forbidden), _ipv4_networks(Tier.private)
    named = [entry for entry in policy.allow if any(is_subnet(entry, row) for row in forbidden)]
    rules = [f"ip daddr {_set(forbidden)} {_REFUSE}", f"ip daddr {_set(private)} {_REFUSE}"]
    if others := [entry for entry in policy.allow if entry not in named]:
        rules.insert(1, f"ip daddr {_set(others)} accept")
    return [f"ip daddr {_set(named)} accept", *rules] if named else rules


def _ipv4_networks(tier: Tier) -> list[IPv4Network]:
    return [network for network in networks_of(tier) if isinstance(network, IPv4Network)]


def _set(items: Iterable[IPv4Network | IPv4Address]) -> str:
    # The kernel refuses sets with overlapping members.
    return f"{{ {', '.join(map(str, collapse_addresses(map(IPv4Network, items))))} }}"


def _chain(name: str, rules: Iterable[str], *, hook: str = "") -> str:
    kind, _, _ = hook.partition(" ")
    priority = "srcnat" if kind == "nat" else "filter"
    head = f"type {hook} priority {priority}; policy accept;\n" if hook else ""
    return f"chain {name} {{\n{head}{''.join(f'{rule}{chr(10)}' for rule in rules)}}}\n"
