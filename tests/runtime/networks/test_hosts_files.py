from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from hublet.runtime.attempt_folder import ProcessIdentity
from hublet.runtime.networks.name_resolution import hosts_text, resolver_text, rewrite_in_place
from hublet.runtime.networks.records import EgressEndpoints, NetworkMember

LOOPBACK = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"


def a_member(last: int, *names: str) -> NetworkMember:
    return NetworkMember(
        folder=Path(f"/data/{last}"),
        block=IPv4Network("10.213.0.0/24"),
        address=IPv4Address(f"10.213.0.{last}"),
        names=names,
        switch=1,
        maker=ProcessIdentity(pid=1, start=1, boot="b"),
        descriptor=3,
    )


def test_each_name_has_a_line_and_the_members_own_comes_first() -> None:
    members = [a_member(10, "job-b", "all", "worker"), a_member(2, "job-a", "all", "leader")]

    assert hosts_text(members, None) == (
        f"{LOOPBACK}10.213.0.2 job-a\n10.213.0.2 all\n10.213.0.2 leader\n"
        "10.213.0.10 job-b\n10.213.0.10 all\n10.213.0.10 worker\n"
    )


def test_no_line_is_longer_than_musl_reads() -> None:
    names = [f"{number:02}{'a' * 61}" for number in range(22)]

    lines = hosts_text([a_member(254, *names)], None).splitlines()

    assert max(map(len, lines)) < 512
    assert [line.split()[-1] for line in lines[2:]] == names


def test_who_may_reach_outside_finds_the_hub_by_its_name() -> None:
    addresses = (IPv4Address("192.168.1.7"), IPv4Address("192.168.1.8"))
    outside = EgressEndpoints(hub_host="hub.example", hub_port=443, hub_addresses=addresses)

    assert hosts_text([], outside) == (
        f"{LOOPBACK}192.168.1.7 hub.example\n192.168.1.8 hub.example\n"
    )
    assert hosts_text([], EgressEndpoints(hub_addresses=addresses)) == LOOPBACK


def test_names_are_asked_of_the_nameservers_and_of_nobody_without_a_way_outside() -> None:
    servers = (IPv4Address("10.0.0.53"), IPv4Address("10.0.0.54"))

    text = resolver_text(EgressEndpoints(nameservers=servers))

    assert text == "nameserver 10.0.0.53\nnameserver 10.0.0.54\n"
    assert "nameserver" not in resolver_text(None)


def test_a_file_that_jobs_see_stays_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    rewrite_in_place(path, "one two three\nfour\n")
    number = path.stat().st_ino
    with path.open() as seen:
        rewrite_in_place(path, "five\n")
        assert seen.read() == "five\n"
        rewrite_in_place(path, "five\nsix, which is longer than all before\n")

    assert path.stat().st_ino == number
    assert path.read_text() == "five\nsix, which is longer than all before\n"
    assert path.stat().st_mode & 0o777 == 0o644
