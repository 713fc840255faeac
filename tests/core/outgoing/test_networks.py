"""Which addresses are refused, in whatever they are wrapped."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hublet.core.config import Settings
from hublet.core.outgoing import AddressPolicy, AddressVerdict, Tier, classify

PUBLIC = AddressVerdict(tier=Tier.allowed, reason="public")
PRIVATE = AddressVerdict(tier=Tier.private, reason="private network")


def forbidden(reason: str) -> AddressVerdict:
    return AddressVerdict(tier=Tier.forbidden, reason=reason)


def opening(*networks: str) -> AddressPolicy:
    return AddressPolicy(allow=tuple(ip_network(network) for network in networks))


@pytest.mark.parametrize(
    ("reason", "addresses"),
    [
        pytest.param("loopback", "127.0.0.1 127.255.255.255 ::1", id="this machine"),
        pytest.param("unspecified", "0.0.0.0 0.255.255.255 ::", id="no address at all"),
        pytest.param(
            "link-local", "169.254.0.1 169.254.255.255 fe80::1 febf::1 fe80::1%eth0", id="the wire"
        ),
        pytest.param(
            "metadata service",
            "169.254.169.254 169.254.170.2 168.63.129.16 100.100.100.200 192.0.0.192 "
            "fd00:ec2::254 fd20:ce::254 fd00:42::42 fd00:c1::a9fe:a9fe",
            id="secrets of the clouds, also inside private and public networks",
        ),
        pytest.param("multicast", "224.0.0.1 239.255.255.255 ff02::1 ff0e::1", id="many at once"),
        pytest.param("broadcast", "255.255.255.255", id="everybody"),
        pytest.param(
            "documentation",
            "192.0.2.1 198.51.100.1 203.0.113.255 2001:db8::1 3fff::1 3fff:fff::1",
            id="examples",
        ),
        pytest.param(
            "reserved",
            "192.0.0.1 192.88.99.1 198.18.0.1 198.19.255.255 240.0.0.1 255.255.255.254 "
            "64:ff9b:1::808:808 100::1 200::1 400::1 800::1 1000::1 2001:2::1 2001:1ff::1 "
            "2002:808:808:: 4000::1 5f00::1 8000::1 c000::1 e000::1 f000::1 f800::1 fe00::1 "
            "::808:808 ::ffff:0:808:808 ::1:0:0:0",
            id="what nobody has, and tunnels to public addresses",
        ),
    ],
)
def test_what_is_forbidden(reason: str, addresses: str) -> None:
    for address in addresses.split():
        assert classify(address) == forbidden(reason), address


def test_what_is_private() -> None:
    addresses = (
        "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255 "
        "100.64.0.0 100.127.255.255 fc00::1 fdff::1 fec0::1 feff::1"
    )
    for address in addresses.split():
        assert classify(address) == PRIVATE, address


def test_what_is_public() -> None:
    addresses = (
        "1.0.0.0 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 "
        "128.0.0.0 168.63.129.15 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 "
        "192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 "
        "223.255.255.255 2001:200::1 2001:4860:4860::8888 2606:4700::1111 2a00::1 3ffe::1 "
        "64:ff9b::808:808 ::ffff:8.8.8.8"
    )
    for address in addresses.split():
        assert classify(address) == PUBLIC, address


@pytest.mark.parametrize(
    ("address", "verdict"),
    [
        pytest.param("::ffff:127.0.0.1", forbidden("loopback"), id="mapped"),
        pytest.param("::127.0.0.1", forbidden("loopback"), id="compatible"),
        pytest.param("::ffff:0:127.0.0.1", forbidden("loopback"), id="translated"),
        pytest.param("64:ff9b::127.0.0.1", forbidden("loopback"), id="NAT64"),
        pytest.param("64:ff9b:1::127.0.0.1", forbidden("loopback"), id="local NAT64"),
        pytest.param("2002:7f00:1::", forbidden("loopback"), id="6to4"),
        pytest.param("2001:0:7f00:1::", forbidden("loopback"), id="Teredo's server"),
        pytest.param("2001:0:808:808::80ff:fffe", forbidden("loopback"), id="Teredo's client"),
        pytest.param("2606::5efe:127.0.0.1", forbidden("loopback"), id="ISATAP"),
        pytest.param("2606::200:5efe:127.0.0.1", forbidden("loopback"), id="global ISATAP"),
        pytest.param("::ffff:10.0.0.1", PRIVATE, id="mapped private"),
        pytest.param("64:ff9b::10.0.0.1", PRIVATE, id="NAT64 to private"),
        pytest.param("::ffff:169.254.169.254", forbidden("metadata service"), id="mapped metadata"),
    ],
)
def test_what_an_address_carries_is_judged(address: str, verdict: AddressVerdict) -> None:
    assert classify(address) == verdict


@pytest.mark.parametrize(
    ("address", "allow", "verdict"),
    [
        pytest.param("10.1.2.3", "10.0.0.0/8", PUBLIC, id="its network"),
        pytest.param("10.1.2.3", "10.1.2.3/32", PUBLIC, id="the address itself"),
        pytest.param("10.1.2.3", "0.0.0.0/0", PUBLIC, id="everything, if private"),
        pytest.param("10.1.2.3", "10.9.0.0/16", PRIVATE, id="not another network"),
        pytest.param("fd12::1", "fd00::/8", PUBLIC, id="IPv6"),
        pytest.param("::ffff:10.1.2.3", "10.0.0.0/8", PUBLIC, id="also when mapped"),
        pytest.param("64:ff9b::10.1.2.3", "10.0.0.0/8", PUBLIC, id="also through NAT64"),
        pytest.param("127.0.0.1", "127.0.0.0/8", PUBLIC, id="a forbidden network by its name"),
        pytest.param("127.0.0.1", "127.0.0.1/32", PUBLIC, id="a part of a forbidden network"),
        pytest.param("::1", "::1/128", PUBLIC, id="loopback of IPv6"),
        pytest.param("127.0.0.1", "0.0.0.0/0", forbidden("loopback"), id="everything opens none"),
        pytest.param("::1", "::/0", forbidden("loopback"), id="everything of IPv6 opens none"),
        pytest.param("5f00::1", "::/0", forbidden("reserved"), id="nor what is reserved"),
        pytest.param("127.0.0.1", "127.0.0.2/32", forbidden("loopback"), id="not its neighbour"),
        pytest.param("::1", "127.0.0.0/8", forbidden("loopback"), id="IPv4 does not open IPv6"),
        pytest.param(
            "169.254.169.254", "169.254.0.0/16", forbidden("metadata service"), id="not around it"
        ),
        pytest.param("169.254.169.254", "169.254.169.254/32", PUBLIC, id="a service by its name"),
        pytest.param(
            "100.100.100.200", "100.64.0.0/10", forbidden("metadata service"), id="not inside"
        ),
        pytest.param("2002:808:808::", "2002::/16", PUBLIC, id="a tunnel to a public address"),
        pytest.param(
            "2002:7f00:1::", "2002::/16", forbidden("loopback"), id="not what hides in it"
        ),
        pytest.param("2002:7f00:1::", "127.0.0.0/8", forbidden("reserved"), id="nor what hides it"),
        pytest.param(
            "64:ff9b:1::808:808", "64:ff9b:1::/48", PUBLIC, id="a translator of one's own"
        ),
        pytest.param("64:ff9b:1::a00:1", "64:ff9b:1::/48", PRIVATE, id="but not what is behind it"),
    ],
)
def test_what_an_operator_opens(address: str, allow: str, verdict: AddressVerdict) -> None:
    assert classify(address, opening(allow)) == verdict


def test_the_policy_is_the_setting_and_in_test_mode_loopback() -> None:
    settings = Settings()
    settings = replace(
        settings, outgoing=replace(settings.outgoing, allow=(ip_network("10.0.0.0/8"),))
    )
    testing = replace(settings, server=replace(settings.server, test_mode=True))

    assert AddressPolicy.of(settings) == opening("10.0.0.0/8")
    assert AddressPolicy.of(testing) == opening("10.0.0.0/8", "127.0.0.0/8", "::1/128")


REFUSED = (
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 "
    "192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 "
    "203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32"
)
refused_addresses = st.sampled_from([ip_network(each) for each in REFUSED.split()]).flatmap(
    lambda network: st.integers(int(network[0]), int(network[-1])).map(IPv4Address)
)
low = st.integers(0, 0xFFFF_FFFF)
lower = st.integers(0, 2**80 - 1)


@given(inner=refused_addresses, any32=low, any80=lower)
@example(inner=IPv4Address("127.0.0.1"), any32=0, any80=0)
def test_no_wrapping_hides_a_refused_address(inner: IPv4Address, any32: int, any80: int) -> None:
    number = int(inner)
    wrapped = [
        0xFFFF << 32 | number,
        0xFFFF << 48 | number,
        number,
        0x64_FF9B << 96 | number,
        0x64_FF9B_0001 << 80 | any80 >> 32 << 32 | number,
        0x2002 << 112 | number << 80 | any80,
        0x2001_0000 << 96 | number << 64 | any80 & (2**64 - 1),
        0x2001_0000 << 96 | any32 << 64 | number ^ 0xFFFF_FFFF,
        0x2606 << 112 | 0x5EFE << 32 | number,
    ]
    assert not classify(inner).allowed
    for address in map(IPv6Address, wrapped):
        assert not classify(address).allowed, address


@given(st.integers(0, 2**128 - 1).map(IPv6Address))
def test_of_ipv6_only_what_is_given_out_is_allowed(address: IPv6Address) -> None:
    if classify(address).allowed:
        outer = address in ip_network("2000::/3")
        inner = address.ipv4_mapped or address in ip_network("64:ff9b::/96")
        assert outer or inner
