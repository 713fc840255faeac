from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from hublet.runtime.networks import name_resolution
from hublet.runtime.networks.name_resolution import find_endpoints
from hublet.runtime.networks.records import EgressEndpoints, NetworkPolicy


def a_policy(base_url: str = "http://192.0.2.7:8000", *nameservers: str) -> NetworkPolicy:
    return NetworkPolicy(
        range=IPv4Network("10.213.0.0/16"),
        outbound=True,
        nameservers=tuple(map(IPv4Address, nameservers)),
        base_url=base_url,
    )


@pytest.fixture
def resolvers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The machine's two files, which are not there yet."""
    files = (tmp_path / "resolv.conf", tmp_path / "behind-the-stub.conf")
    monkeypatch.setattr(name_resolution, "_RESOLVERS", files)
    return files


def test_the_machines_nameservers_are_used_when_a_job_can_reach_them(
    resolvers: tuple[Path, Path],
) -> None:
    first, second = resolvers
    assert find_endpoints(a_policy()).nameservers == ()
    second.write_text("nameserver 10.0.0.54\n")
    first.write_text("# by hand\nsearch example\nnameserver 127.0.0.53\nnameserver fe80::1\n")
    assert find_endpoints(a_policy()).nameservers == (IPv4Address("10.0.0.54"),)
    first.write_text("nameserver 127.0.0.53\nnameserver 10.0.0.53\noptions edns0\nnameserver\n")
    assert find_endpoints(a_policy()).nameservers == (IPv4Address("10.0.0.53"),)


def test_the_settings_name_others(resolvers: tuple[Path, Path]) -> None:
    resolvers[0].write_text("nameserver 10.0.0.53\n")

    found = find_endpoints(a_policy("http://192.0.2.7:8000", "10.9.9.9"))

    assert found.nameservers == (IPv4Address("10.9.9.9"),)


@pytest.mark.usefixtures("resolvers")
@pytest.mark.parametrize(
    ("base_url", "found"),
    [
        pytest.param(
            "http://192.168.1.7:8000",
            EgressEndpoints(hub_port=8000, hub_addresses=(IPv4Address("192.168.1.7"),)),
            id="an address",
        ),
        pytest.param(
            "https://192.168.1.7",
            EgressEndpoints(hub_port=443, hub_addresses=(IPv4Address("192.168.1.7"),)),
            id="the port of https",
        ),
        pytest.param(
            "http://localhost:8000",
            EgressEndpoints(hub_host="localhost", hub_port=8000),
            id="loopback is the job's own",
        ),
        pytest.param(
            "http://hub.invalid",
            EgressEndpoints(hub_host="hub.invalid", hub_port=80),
            id="a name that nobody knows",
        ),
    ],
)
def test_the_hub_is_where_its_base_url_says(base_url: str, found: EgressEndpoints) -> None:
    assert find_endpoints(a_policy(base_url)) == found
