"""What a job runs on and what is mounted into it: the words of interface 2.2."""

from enum import StrEnum


class Flavor(StrEnum):
    """The hardware of a job, in the order of the interface."""

    cpu_basic = "cpu-basic"
    cpu_upgrade = "cpu-upgrade"
    cpu_performance = "cpu-performance"
    cpu_xl = "cpu-xl"
    sprx8 = "sprx8"
    zero_a10g = "zero-a10g"
    t4_small = "t4-small"
    t4_medium = "t4-medium"
    l4x1 = "l4x1"
    l4x4 = "l4x4"
    l40sx1 = "l40sx1"
    l40sx4 = "l40sx4"
    l40sx8 = "l40sx8"
    a10g_small = "a10g-small"
    a10g_large = "a10g-large"
    a10g_largex2 = "a10g-largex2"
    a10g_largex4 = "a10g-largex4"
    a100_large = "a100-large"
    a100x4 = "a100x4"
    a100x8 = "a100x8"
    h200 = "h200"
    h200x2 = "h200x2"
    h200x4 = "h200x4"
    h200x8 = "h200x8"
    rtx_pro_6000 = "rtx-pro-6000"
    rtx_pro_6000x2 = "rtx-pro-6000x2"
    rtx_pro_6000x4 = "rtx-pro-6000x4"
    rtx_pro_6000x8 = "rtx-pro-6000x8"
    inf2x6 = "inf2x6"


class Arch(StrEnum):
    amd64 = "amd64"
    arm64 = "arm64"


class VolumeType(StrEnum):
    bucket = "bucket"
    model = "model"
    dataset = "dataset"
    space = "space"
