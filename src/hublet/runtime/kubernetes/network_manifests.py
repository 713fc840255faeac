"""Manifests of networks: the services of a group's host names, and the policies of pods."""

from collections.abc import Mapping

from hublet.runtime.kubernetes.manifests import (
    GROUP,
    HUB,
    NAME_PREFIX,
    NETWORK,
    Manifest,
    PodSettings,
    group_label,
)
from hublet.runtime.records import LaunchOrder

_DNS_PORT = 53
_PRIVATE = ("10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16")
# Every namespace has it by itself.
_NAMESPACE_NAME = "kubernetes.io/metadata.name"


def services_of(order: LaunchOrder, settings: PodSettings, *, owner: Manifest) -> list[Manifest]:
    """Return a headless service for each host name of an attempt in its network group."""
    names = () if order.group is None else order.group.names
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": name,
                "labels": {HUB: settings.hub},
                "ownerReferences": [owner],
            },
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
                "selector": {HUB: settings.hub, NAME_PREFIX + name: "true"},
            },
        }
        for name in names
    ]


def hub_policy(settings: PodSettings) -> Manifest:
    """Return the policy of all pods of this hub: jobs.network goes out, and nobody comes in.

    Where the hub runs in the cluster, its own pods do.
    """
    dns = [{"protocol": protocol, "port": _DNS_PORT} for protocol in ("UDP", "TCP")]
    allowed: list[Manifest] = [{"ports": dns}]
    if settings.network == "shared":
        allowed = [{}]
    elif settings.network == "outbound":
        public = {"ipBlock": {"cidr": "0.0.0.0/0", "except": list(_PRIVATE)}}
        private = [{"ipBlock": {"cidr": str(each)}} for each in settings.network_allow]
        allowed.append({"to": [public, *private]})
    return _policy(
        f"hublet-{settings.hub}",
        settings,
        selector={NETWORK: settings.hub},
        ingress=_hub_ingress(settings),
        egress=allowed,
    )


def _hub_ingress(settings: PodSettings) -> list[Manifest]:
    if not settings.hub_pods:
        return []
    # Labels alone would let in whoever gives them to a pod of another namespace.
    hub = {
        "namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: settings.hub_namespace}},
        "podSelector": {"matchLabels": dict(settings.hub_pods)},
    }
    return [{"from": [hub]}]


def group_policy(order: LaunchOrder, settings: PodSettings, *, owner: Manifest) -> Manifest:
    """Return the policy of a network group: its members reach each other."""
    selector = {HUB: settings.hub, GROUP: group_label(order) or ""}
    members: list[Manifest] = [{"podSelector": {"matchLabels": selector}}]
    name = f"hublet-{settings.hub}-{selector[GROUP]}"
    policy = _policy(
        name, settings, selector=selector, ingress=[{"from": members}], egress=[{"to": members}]
    )
    policy["metadata"]["ownerReferences"] = [owner]
    return policy


def _policy(
    name: str,
    settings: PodSettings,
    *,
    selector: Mapping[str, str],
    ingress: list[Manifest],
    egress: list[Manifest],
) -> Manifest:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "labels": {HUB: settings.hub}},
        "spec": {
            "podSelector": {"matchLabels": dict(selector)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": ingress,
            "egress": egress,
        },
    }
