from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from hublet.runtime.attempt_folder import ProcessIdentity
from hublet.runtime.networks import name_resolution
from hublet.runtime.networks.name_resolution import addresses_of
from hublet.runtime.networks.records import NetworkMember
from hublet.runtime.networks.registry import MemberRegistry

MOST_MEMBERS, MOST_NAMES = 253, 22


def a_member(folder: Path, number: int, *names: str) -> NetworkMember:
    return NetworkMember(
        folder=folder,
        block=IPv4Network("10.213.0.0/24"),
        address=IPv4Address("10.213.0.1") + number,
        names=(f"job-{number}", *names),
        switch=1,
        maker=ProcessIdentity(pid=1, start=1, boot="b"),
        descriptor=3,
    )


def published(data_dir: Path, key: str, members: list[NetworkMember]) -> Path:
    registry = MemberRegistry.of(data_dir)
    network_dir = registry.dir_of(key)
    network_dir.mkdir(parents=True)
    for member in members:
        registry.add(network_dir, member)
    name_resolution.rewrite_in_place(
        network_dir / name_resolution.HOSTS_FILE, name_resolution.hosts_text(members, None)
    )
    return network_dir


@pytest.mark.parametrize(
    ("folder", "name", "found"),
    [
        pytest.param("one", "all", ["10.213.0.2", "10.213.0.3"], id="several have it"),
        pytest.param("one", "worker", ["10.213.0.3"], id="one has it"),
        pytest.param("one", "work", [], id="nobody has a part of a name"),
        pytest.param("one", "10.213.0.3", [], id="an address is no name"),
        pytest.param("one", "secret", [], id="that is another group"),
        pytest.param("elsewhere", "all", [], id="who is in no group finds nobody"),
    ],
)
def test_a_name_is_that_of_the_attempts_own_network(
    tmp_path: Path, folder: str, name: str, found: list[str]
) -> None:
    one, two = a_member(tmp_path / "one", 1, "all"), a_member(tmp_path / "two", 2, "all", "worker")
    published(tmp_path, "group train", [one, two])
    published(tmp_path, "group other", [a_member(tmp_path / "three", 3, "secret")])

    assert addresses_of(tmp_path, tmp_path / folder, name) == found


def test_the_largest_group_is_searched_to_its_end(tmp_path: Path) -> None:
    names = [f"{number:02}{'a' * 61}" for number in range(MOST_NAMES)]
    members = [a_member(tmp_path / str(n), n, *names) for n in range(1, MOST_MEMBERS + 1)]
    network_dir = published(tmp_path, "group train", members)
    assert (network_dir / name_resolution.HOSTS_FILE).stat().st_size > 1 << 16

    assert addresses_of(tmp_path, tmp_path / "1", "job-253") == ["10.213.0.254"]


def test_a_group_that_ends_meanwhile_has_nobody(tmp_path: Path) -> None:
    network_dir = published(tmp_path, "group train", [a_member(tmp_path / "one", 1)])
    (network_dir / name_resolution.HOSTS_FILE).unlink()

    assert addresses_of(tmp_path, tmp_path / "one", "job-1") == []
    assert addresses_of(tmp_path / "nothing", tmp_path / "one", "job-1") == []
