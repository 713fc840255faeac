"""What an operator writes about flavors and devices."""

import pytest

from hublet.core.config.kinds import DEVICES, FLAVORS, FlavorSize

GIB = 2**30


def test_a_flavor_gets_cores_memory_and_devices() -> None:
    told = "cpu-basic=0.5:512M, t4-small=4:16G:/dev/nvidia0+/dev/dri/renderD128"

    assert FLAVORS.read(told) == (
        FlavorSize(name="cpu-basic", cores=0.5, memory_bytes=GIB // 2),
        FlavorSize(
            name="t4-small",
            cores=4,
            memory_bytes=16 * GIB,
            devices=("/dev/nvidia0", "/dev/dri/renderD128"),
        ),
    )


@pytest.mark.parametrize(
    "told",
    [
        pytest.param("cpu-basic", id="no size"),
        pytest.param("cpu-basic=0:16G", id="no cores"),
        pytest.param("cpu-basic=2:0G", id="no memory"),
        pytest.param("cpu-basic=2:16", id="no unit"),
        pytest.param("cpu-basic=2:16G, cpu-basic=2:16G", id="twice"),
        pytest.param("t4-small=4:16G:", id="no device"),
        pytest.param("t4-small=4:16G:nvidia0", id="no path"),
        pytest.param("t4-small=4:16G:/etc/shadow", id="no device's path"),
        pytest.param("t4-small=4:16G:/dev/../etc/shadow", id="a way out"),
        pytest.param("t4-small=4:16G:/dev/", id="all devices"),
    ],
)
def test_what_is_no_flavor_is_refused(told: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        FLAVORS.read(told)


def test_devices_are_a_list() -> None:
    assert DEVICES.read("/dev/nvidiactl, /dev/nvidia-uvm") == ("/dev/nvidiactl", "/dev/nvidia-uvm")
    with pytest.raises(ValueError, match="/root"):
        DEVICES.read("/root")
