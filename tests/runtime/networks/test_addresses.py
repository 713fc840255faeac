from ipaddress import IPv4Address, IPv4Network

import pytest

from hublet.runtime.errors import NetworkFailed
from hublet.runtime.networks.addresses import free_address, free_block, gateway_of

RANGE = IPv4Network("10.213.0.0/16")


@pytest.mark.parametrize(
    ("is_group", "taken", "block"),
    [
        pytest.param(True, [], "10.213.0.0/24", id="groups from the beginning"),
        pytest.param(False, [], "10.213.255.252/30", id="single jobs from the end"),
        pytest.param(True, ["10.213.0.0/24"], "10.213.1.0/24", id="not that of another group"),
        pytest.param(
            False, ["10.213.255.252/30"], "10.213.255.248/30", id="not that of another job"
        ),
        pytest.param(True, ["10.213.0.7/32"], "10.213.1.0/24", id="not around an address in use"),
        pytest.param(True, ["10.213.0.0/17"], "10.213.128.0/24", id="not inside of a route"),
    ],
)
def test_a_network_overlaps_with_nothing(
    is_group: bool,  # noqa: FBT001 - a row of the table
    taken: list[str],
    block: str,
) -> None:
    found = free_block(RANGE, is_group=is_group, taken=[IPv4Network(each) for each in taken])

    assert found == IPv4Network(block)


def test_a_range_can_be_used_up() -> None:
    with pytest.raises(NetworkFailed, match=r"jobs\.network_range \(10\.213\.0\.0/16\) is in use"):
        free_block(RANGE, is_group=True, taken=[IPv4Network("10.0.0.0/8")])


def test_members_get_the_lowest_address_that_is_free() -> None:
    block = IPv4Network("10.213.4.0/24")
    two, three = IPv4Address("10.213.4.2"), IPv4Address("10.213.4.3")

    assert gateway_of(block) == IPv4Address("10.213.4.1")
    assert free_address(block, []) == two
    assert free_address(block, [two]) == three
    assert free_address(block, [three]) == two


def test_a_group_has_room_for_253_members() -> None:
    block = IPv4Network("10.213.4.0/24")
    members = [IPv4Address(f"10.213.4.{last}") for last in range(2, 255)]

    assert free_address(block, members[:-1]) == members[-1]
    with pytest.raises(NetworkFailed, match="every address of its network group is in use"):
        free_address(block, members)
