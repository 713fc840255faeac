"""Control groups: found where this hub may make some, in both versions."""

from pathlib import Path

import pytest

from hublet.runtime import cgroups
from hublet.runtime.cgroups import Hierarchy

NEEDED = ("memory", "cpu", "pids")


def a_machine(tmp_path: Path, *, groups: str, mounts: list[str]) -> Path:
    """What /proc/self says on a machine whose control groups lie in the folder of the test."""
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "cgroup").write_text(groups)
    lines = [f"30 20 0:1 {mount.format(top=tmp_path)}\n" for mount in mounts]
    (proc / "mountinfo").write_text("20 1 8:1 / / rw - ext4 /dev/sda rw\n" + "".join(lines))
    return proc


def second_version(tmp_path: Path, *, own: str, divided: str, at: str = "") -> Path:
    proc = a_machine(tmp_path, groups=f"0::{own}\n", mounts=["/ {top}/cg rw - cgroup2 cgroup2 rw"])
    folder = tmp_path / "cg" / at
    folder.mkdir(parents=True, exist_ok=True)
    (tmp_path / "cg" / own.lstrip("/")).mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.subtree_control").write_text(divided)
    return proc


def test_the_first_version_is_found_under_the_hubs_own_groups(tmp_path: Path) -> None:
    proc = a_machine(
        tmp_path,
        groups="4:memory:/hub\n3:pids:/\n2:cpu,cpuacct:/hub\n0::/\n",
        mounts=[
            "/ {top}/memory rw - cgroup cgroup rw,memory",
            "/ {top}/pids rw - cgroup cgroup rw,pids",
            "/ {top}/cpu rw - cgroup cgroup rw,cpu,cpuacct",
        ],
    )
    for name in ("memory/hub", "pids", "cpu/hub"):
        (tmp_path / name).mkdir(parents=True)
    assert cgroups.find_hierarchies(proc) == [
        Hierarchy(folder=tmp_path / "memory/hub", version=1, controllers=("memory",)),
        Hierarchy(folder=tmp_path / "cpu/hub", version=1, controllers=("cpu",)),
        Hierarchy(folder=tmp_path / "pids", version=1, controllers=("pids",)),
    ]


def test_the_first_version_counts_only_when_it_is_whole(tmp_path: Path) -> None:
    proc = a_machine(
        tmp_path, groups="4:memory:/\n", mounts=["/ {top}/memory rw - cgroup cgroup rw,memory"]
    )
    (tmp_path / "memory").mkdir()
    assert cgroups.find_hierarchies(proc) == []


def test_the_second_version_is_found_where_it_is_divided(tmp_path: Path) -> None:
    proc = second_version(
        tmp_path, own="/hub.service", divided="cpu memory pids io", at="hub.service"
    )
    expected = Hierarchy(folder=tmp_path / "cg/hub.service", version=2, controllers=NEEDED)
    assert cgroups.find_hierarchies(proc) == [expected]


def test_a_hub_in_a_group_of_its_own_uses_the_one_above(tmp_path: Path) -> None:
    proc = second_version(
        tmp_path, own="/hub.service/hub", divided="cpu memory pids", at="hub.service"
    )
    expected = Hierarchy(folder=tmp_path / "cg/hub.service", version=2, controllers=NEEDED)
    assert cgroups.find_hierarchies(proc) == [expected]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="There is no /proc here.")
def test_nothing_is_found_where_nothing_can_be_made(tmp_path: Path) -> None:
    proc = a_machine(
        tmp_path, groups="0::/hub\n", mounts=["/ {top}/missing rw - cgroup2 cgroup2 rw"]
    )
    assert cgroups.find_hierarchies(proc) == []
    assert cgroups.find_hierarchies(tmp_path / "nowhere") == []


def test_what_is_written_into_the_second_version() -> None:
    place = Hierarchy(folder=Path("/cg"), version=2, controllers=NEEDED)
    assert cgroups.groups_for([place], name="job", cores=1.5, memory_bytes=1024) == [
        (
            "/cg/job",
            [
                ("memory.max", "1024"),
                ("memory.swap.max", "0"),
                ("memory.oom.group", "1"),
                ("cpu.max", "150000 100000"),
                ("pids.max", "2048"),
            ],
        )
    ]


def test_what_is_written_into_the_first_version() -> None:
    places = [
        Hierarchy(folder=Path("/memory"), version=1, controllers=("memory",)),
        Hierarchy(folder=Path("/cpu"), version=1, controllers=("cpu",)),
        Hierarchy(folder=Path("/pids"), version=1, controllers=("pids",)),
    ]
    assert cgroups.groups_for(places, name="job", cores=0.5, memory_bytes=1024) == [
        (
            "/memory/job",
            [("memory.limit_in_bytes", "1024"), ("memory.memsw.limit_in_bytes", "1024")],
        ),
        ("/cpu/job", [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "50000")]),
        ("/pids/job", [("pids.max", "2048")]),
    ]
