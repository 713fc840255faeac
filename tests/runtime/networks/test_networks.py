"""Networks as the kernel makes them, tried by somebody with more rights than any job has."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from hublet.runtime.networks import namespaces
from hublet.runtime.networks.membership import NetworkAttachment, Networks, find_obstacle
from hublet.runtime.networks.namespaces import ip, nft
from hublet.runtime.networks.records import NetworkPolicy
from runtime.networks.machines import (
    METADATA,
    NEIGHBOUR,
    PRIVATE,
    PUBLIC,
    STRANGER,
    WORLD,
    Machine,
    a_policy,
    names_in,
    needs_networks,
    reached,
    run_inside,
    soon,
    within,
)

pytestmark = needs_networks

Join = Callable[..., NetworkAttachment]
EVERYWHERE = "0.0.0.0"


def outbound(*allow: str, **changes: Any) -> NetworkPolicy:
    networks = tuple(map(IPv4Network, allow))
    return a_policy(outbound=True, base_url=f"http://{PUBLIC}:8000", allow=networks, **changes)


@pytest.fixture
def join(tmp_path: Path) -> Iterator[Join]:
    """Let a job of a name be in a group; or alone, without one."""
    places: list[NetworkAttachment] = []

    def join(
        name: str, group: str | None = None, policy: NetworkPolicy | None = None
    ) -> NetworkAttachment:
        networks = Networks(data_dir=tmp_path, policy=policy or a_policy())
        places.append(networks.join(tmp_path / name, names=(name, "all"), group=group))
        return places[-1]

    yield join
    for place in places:
        place.close()


def leave(folder: Path, policy: NetworkPolicy | None = None) -> None:
    Networks(data_dir=folder.parent, policy=policy or a_policy()).leave(folder)


def clean_up(data_dir: Path, policy: NetworkPolicy | None = None) -> None:
    Networks(data_dir=data_dir, policy=policy or a_policy()).clean_up()


def test_members_of_a_group_reach_each_other_on_every_port(machine: Machine, join: Join) -> None:
    first, second, third = (join(name, "group") for name in ("one", "two", "three"))
    machine.listens("10.213.0.2", 80, 29500, at=first.handles.job)
    machine.listens("10.213.0.3", 80, at=second.handles.job)

    assert reached(third, "10.213.0.2:80", "10.213.0.2:29500", "udp:10.213.0.2:29500") == [
        "10.213.0.2:80 answers 10.213.0.4",
        "10.213.0.2:29500 answers 10.213.0.4",
        "udp:10.213.0.2:29500 answers 10.213.0.4",
    ]
    assert reached(first, "10.213.0.3:80", "10.213.0.3:81") == [
        "10.213.0.3:80 answers 10.213.0.2",
        "10.213.0.3:81 is out of reach",
    ]
    assert names_in(first.hosts) == {
        "localhost": ["127.0.0.1", "::1"],
        "ip6-localhost": ["::1"],
        "ip6-loopback": ["::1"],
        "one": ["10.213.0.2"],
        "two": ["10.213.0.3"],
        "three": ["10.213.0.4"],
        "all": ["10.213.0.2", "10.213.0.3", "10.213.0.4"],
    }


def test_another_group_is_out_of_reach_even_for_who_pretends_to_be_in_it(
    machine: Machine, join: Join
) -> None:
    one, other = join("one", "group"), join("other", "other group")
    machine.listens("10.213.1.2", 80, at=other.handles.job)
    assert reached(other, "10.213.1.2:80") == ["10.213.1.2:80 answers 10.213.1.2"]

    assert reached(one, "10.213.1.2:80") == ["10.213.1.2:80 is out of reach"]
    run_inside(one, "ip", "addr", "add", "10.213.1.9/24", "dev", "eth0")
    assert reached(one, "10.213.1.2:80", "udp:10.213.1.2:80") == [
        "10.213.1.2:80 is out of reach",
        "udp:10.213.1.2:80 is out of reach",
    ]
    assert one.hosts != other.hosts
    assert "one" not in names_in(other.hosts)


def test_a_group_is_nothing_that_the_machine_could_see(machine: Machine, join: Join) -> None:
    machine.listens(EVERYWHERE, 8000)
    machine.listens(WORLD, 80, at=machine.world)

    place = join("one", "group")

    assert (machine.interfaces(), machine.tables()) == (set(), [])
    run_inside(place, "ip", "route", "add", "default", "via", "10.213.0.1")
    targets = (
        "127.0.0.1:8000",
        f"{PUBLIC}:8000",
        f"{PRIVATE}:8000",
        "10.213.0.1:8000",
        f"{WORLD}:80",
    )
    assert reached(place, *targets) == [f"{target} is out of reach" for target in targets]


@pytest.mark.parametrize("group", [None, "group"], ids=["alone", "in a group"])
def test_what_is_outbound_reaches_the_world_and_the_hub_and_nothing_private(
    machine: Machine, join: Join, group: str | None
) -> None:
    machine.listens(EVERYWHERE, 8000, 22)
    for address in (WORLD, STRANGER, NEIGHBOUR, METADATA):
        machine.listens(address, 80, at=machine.world)
    place = join("one", group, outbound())
    own = names_in(place.hosts)["one"][0]

    assert reached(place, f"{WORLD}:80", f"udp:{WORLD}:80", f"{PUBLIC}:8000") == [
        f"{WORLD}:80 answers {PUBLIC}",
        f"udp:{WORLD}:80 answers {PUBLIC}",
        f"{PUBLIC}:8000 answers {own}",
    ]
    targets = [f"{address}:80" for address in (STRANGER, NEIGHBOUR, METADATA)]
    targets += [f"{PUBLIC}:22", f"udp:{PUBLIC}:8000", f"{PRIVATE}:8000", f"udp:{METADATA}:80"]
    targets += ["127.0.0.1:8000", f"{gateway_of(own)}:8000"]
    assert reached(place, *targets) == [f"{target} is out of reach" for target in targets]


def gateway_of(address: str) -> str:
    return str(IPv4Network(f"{address}/30", strict=False)[1])


def test_jobs_that_may_reach_outside_do_not_reach_each_other(machine: Machine, join: Join) -> None:
    # Not even where all of their addresses are open.
    policy = outbound("10.0.0.0/8")
    places = [
        join("one", "group", policy),
        join("two", "other group", policy),
        *(join(name, None, policy) for name in ("three", "four")),
    ]
    addresses = [
        names_in(place.hosts)[name][0]
        for place, name in zip(places, ("one", "two", "three", "four"), strict=True)
    ]
    for place, address in zip(places, addresses, strict=True):
        machine.listens(address, 80, at=place.handles.job)

    assert addresses == ["10.213.0.2", "10.213.1.2", "10.213.255.254", "10.213.255.250"]
    for place, own in zip(places, addresses, strict=True):
        for rules in ("kept", "flushed"):
            if rules == "flushed":
                run_inside(place, "nft", "flush", "ruleset")
            targets = [f"{each}:80" for each in addresses if each != own]
            assert reached(place, *targets) == [f"{each} is out of reach" for each in targets]


def test_the_machine_keeps_the_rules_of_a_job_that_lost_its_own(
    machine: Machine, join: Join
) -> None:
    machine.listens(EVERYWHERE, 8000, 22)
    for address in (WORLD, STRANGER, METADATA):
        machine.listens(address, 80, at=machine.world)
    place = join("one", None, outbound())

    run_inside(place, "nft", "flush", "ruleset")

    closed = [f"{STRANGER}:80", f"{METADATA}:80", f"{PRIVATE}:8000", f"{PUBLIC}:22"]
    assert reached(place, f"{WORLD}:80", *closed) == [
        f"{WORLD}:80 answers {PUBLIC}",
        *(f"{target} is out of reach" for target in closed),
    ]
    # Nor does it let somebody else's address out, though everybody would know the way back.
    [uplink] = machine.interfaces()
    ip([f"route add 10.77.0.2/32 dev {uplink}"])
    within(machine.world, lambda: ip([f"route add 10.77.0.2/32 via {PUBLIC}"]))
    run_inside(place, "ip", "addr", "add", "10.77.0.2/32", "dev", "eth0")
    via = ("via", "10.213.255.253", "src", "10.77.0.2")
    run_inside(place, "ip", "route", "replace", "default", *via)
    assert reached(place, f"{WORLD}:80") == [f"{WORLD}:80 is out of reach"]


def test_a_job_keeps_its_rules_when_those_of_the_machine_are_gone_and_they_come_back(
    machine: Machine, join: Join, tmp_path: Path
) -> None:
    for address in (WORLD, STRANGER, METADATA):
        machine.listens(address, 80, at=machine.world)
    within(machine.world, lambda: ip([f"route add 10.213.0.0/16 via {PUBLIC}"]))
    place = join("one", None, outbound())

    nft("flush ruleset")
    assert reached(place, f"{WORLD}:80", f"{STRANGER}:80", f"{METADATA}:80") == [
        f"{WORLD}:80 answers 10.213.255.254",
        f"{STRANGER}:80 is out of reach",
        f"{METADATA}:80 is out of reach",
    ]
    clean_up(tmp_path, outbound())
    assert reached(place, f"{WORLD}:80") == [f"{WORLD}:80 answers {PUBLIC}"]


@pytest.mark.parametrize(
    ("allow", "open_to"),
    [
        pytest.param(["10.99.0.0/24"], [STRANGER], id="a network"),
        pytest.param(["0.0.0.0/0"], [STRANGER, NEIGHBOUR], id="everything but the worst"),
        pytest.param([f"{METADATA}/32"], [METADATA], id="the worst by its name"),
    ],
)
def test_the_settings_open_private_networks(
    machine: Machine, join: Join, allow: list[str], open_to: list[str]
) -> None:
    machine.listens(EVERYWHERE, 22)
    for address in (STRANGER, NEIGHBOUR, METADATA):
        machine.listens(address, 80, at=machine.world)

    place = join("one", None, outbound(*allow))

    for address in (STRANGER, NEIGHBOUR, METADATA):
        answer = f"answers {PUBLIC}" if address in open_to else "is out of reach"
        assert reached(place, f"{address}:80") == [f"{address}:80 {answer}"]
    assert reached(place, f"{PRIVATE}:22") == [f"{PRIVATE}:22 is out of reach"]


def test_nameservers_are_reached_wherever_they_are_but_only_for_names(
    machine: Machine, join: Join
) -> None:
    machine.listens(STRANGER, 53, 80, at=machine.world)
    machine.listens(PRIVATE, 53, 80)
    servers = tuple(IPv4Network(address)[0] for address in (STRANGER, PRIVATE))

    place = join("one", None, outbound(nameservers=servers))

    assert place.resolver.read_text() == f"nameserver {STRANGER}\nnameserver {PRIVATE}\n"
    targets = [f"{STRANGER}:53", f"udp:{STRANGER}:53", f"udp:{PRIVATE}:53", f"{STRANGER}:80"]
    assert reached(place, *targets, f"{PRIVATE}:80") == [
        f"{STRANGER}:53 answers {PUBLIC}",
        f"udp:{STRANGER}:53 answers {PUBLIC}",
        f"udp:{PRIVATE}:53 answers 10.213.255.254",
        f"{STRANGER}:80 is out of reach",
        f"{PRIVATE}:80 is out of reach",
    ]


def test_a_hub_that_lets_nothing_out_any_more_closes_what_is_open(
    machine: Machine, join: Join, tmp_path: Path
) -> None:
    machine.listens(WORLD, 80, at=machine.world)
    machine.listens(EVERYWHERE, 8000)
    place = join("one", "group", outbound())

    clean_up(tmp_path)

    targets = [f"{WORLD}:80", f"{PUBLIC}:8000"]
    assert reached(place, *targets) == [f"{target} is out of reach" for target in targets]


def test_nothing_is_left_when_the_last_one_left(
    machine: Machine, join: Join, tmp_path: Path
) -> None:
    alone, member = join("one", None, outbound()), join("two", "group", outbound())
    assert len(machine.interfaces()) == 2
    assert len(machine.tables()) == 1

    leave(tmp_path / "one", outbound())
    assert len(machine.tables()) == 1
    leave(tmp_path / "two", outbound())
    leave(tmp_path / "two", outbound())

    assert machine.tables() == []
    assert [path.name for path in (tmp_path / "jobs" / "networks").iterdir()] == ["lock"]
    alone.close()
    member.close()
    soon(lambda: machine.interfaces() == set(), why="The cables stay.")


def test_names_vanish_with_their_member_and_its_address_is_free_again(
    machine: Machine, join: Join, tmp_path: Path
) -> None:
    first, second = join("one", "group"), join("two", "group")
    leave(tmp_path / "one")
    assert "one" not in names_in(second.hosts)
    assert names_in(second.hosts)["all"] == ["10.213.0.3"]

    # Somebody still looks into the namespace of the one who left: it has the same address.
    third = join("three", "group")

    assert names_in(second.hosts)["three"] == ["10.213.0.2"]
    machine.listens("10.213.0.2", 80, at=third.handles.job)
    assert reached(second, "10.213.0.2:80") == ["10.213.0.2:80 answers 10.213.0.3"]
    assert reached(first, "10.213.0.3:80") == ["10.213.0.3:80 is out of reach"]


def test_who_joins_again_is_in_the_group_once(machine: Machine, join: Join) -> None:
    join("one", "group").close()
    again = join("one", "group")

    assert names_in(again.hosts)["all"] == ["10.213.0.2"]
    assert machine.interfaces() == set()


@pytest.mark.parametrize("text", ["", "{}", '{"folder": "/x"}', "[]"])
def test_what_a_power_cut_left_is_in_nobodys_way(
    machine: Machine, join: Join, tmp_path: Path, text: str
) -> None:
    place = join("one", "group")
    broken = place.hosts.parent / "0.member"
    broken.write_text(text)

    join("two", "group")

    assert not broken.exists()
    assert names_in(place.hosts)["all"] == ["10.213.0.2", "10.213.0.3"]
    assert machine.interfaces() == set()
    leave(tmp_path / "one")


def test_a_network_is_not_one_that_the_machine_has_a_way_to(machine: Machine, join: Join) -> None:
    ip(["addr add 10.213.0.200/32 dev wan0", "route add 10.213.1.0/25 dev wan0"])

    place = join("one", "group")

    assert names_in(place.hosts)["one"] == ["10.213.2.2"]
    assert machine.interfaces() == set()


JOIN = """
import sys
from ipaddress import IPv4Network
from pathlib import Path
from hublet.runtime.networks.membership import Networks
from hublet.runtime.networks.records import NetworkPolicy

folder = Path(sys.argv[1])
policy = NetworkPolicy(range=IPv4Network("10.213.0.0/16"), outbound=True)
place = Networks(data_dir=folder, policy=policy).join(
    folder / "other", names=("other", "all"), group="group"
)
print("joined", flush=True)
sys.stdin.read()
"""


def test_another_process_finds_the_group_and_leaves_nothing_when_it_is_killed(
    machine: Machine, join: Join, tmp_path: Path
) -> None:
    argv = [sys.executable, "-c", JOIN, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as hub:
        assert hub.stdout is not None
        assert hub.stdout.readline() == b"joined\n"
        place = join("one", "group", outbound())
        machine.listens("10.213.0.3", 80, at=place.handles.job)
        assert names_in(place.hosts)["all"] == ["10.213.0.2", "10.213.0.3"]
        theirs = ["nsenter", f"--net=/proc/{hub.pid}/ns/net", "true"]
        subprocess.run(theirs, check=True)
        os.kill(hub.pid, signal.SIGKILL)

    clean_up(tmp_path, outbound())
    assert names_in(place.hosts)["all"] == ["10.213.0.3"]
    place.close()
    leave(tmp_path / "one", outbound())
    soon(lambda: machine.interfaces() == set(), why="The cables stay.")
    assert machine.tables() == []


def test_a_process_that_is_killed_alone_leaves_only_what_the_next_one_removes(
    machine: Machine, tmp_path: Path
) -> None:
    argv = [sys.executable, "-c", JOIN, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as hub:
        assert hub.stdout is not None
        assert hub.stdout.readline() == b"joined\n"
        assert len(machine.interfaces()) == 1
        os.kill(hub.pid, signal.SIGKILL)

    soon(lambda: machine.interfaces() == set(), why="The cable stays.")
    assert len(machine.tables()) == 1
    clean_up(tmp_path, outbound())
    assert machine.tables() == []
    assert [path.name for path in (tmp_path / "jobs" / "networks").iterdir()] == ["lock"]


def test_without_root_or_programs_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_obstacle(a_policy()) is None
    monkeypatch.setattr(namespaces, "_SEARCH_PATH", "/nowhere")
    assert find_obstacle(a_policy()) == "it needs ip; install the package iproute2"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert find_obstacle(a_policy()) == "it needs a hub that runs as root"
