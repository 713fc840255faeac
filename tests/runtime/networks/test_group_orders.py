"""The network group that a runner is told of."""

from pathlib import Path

import pytest

from hublet.jobs.records import NetworkGroup
from hublet.runtime.errors import CannotRun
from hublet.runtime.records import GroupMembership
from hublet.runtime.sandbox.shim_runner import process_runner
from hublet.runtime.supervisor.environment import environment_of, group_of
from runtime.attempts import launch
from runtime.supervisor.test_environment import SIZE, a_job

TRAIN = NetworkGroup(group="train", aliases=("leader", "worker", "leader"))


def test_a_job_has_the_names_that_its_variables_speak_of() -> None:
    job = a_job(network=TRAIN)
    said = environment_of(job, SIZE, secrets={}, base_url="http://hub.test")
    prefix = said["HUB_NETWORK_GROUP_PREFIX"]

    group = group_of(job)

    assert group is not None
    assert group.names == (
        said["HUB_NETWORK_GROUP_HOSTNAME"],
        f"{prefix}leader",
        f"{prefix}worker",
    )


def test_a_job_without_a_group_has_none() -> None:
    assert group_of(a_job()) is None


def test_the_same_name_is_another_group_for_another_owner_or_resource_group() -> None:
    jobs = [
        a_job(network=TRAIN),
        a_job(network=NetworkGroup(group="train", aliases=("other",))),
        a_job(network=TRAIN, owner_id="grace"),
        a_job(network=TRAIN, resource_group_id="b" * 24),
        a_job(network=NetworkGroup(group="eval")),
    ]

    keys = [group.key for job in jobs if (group := group_of(job))]

    assert keys[0] == keys[1]
    assert len(set(keys)) == 4


async def test_a_plain_process_cannot_be_in_a_group(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="The process runner has no network groups"):
        await launch(
            process_runner(tmp_path),
            tmp_path,
            "true",
            group=GroupMembership(key="k", names=("all",)),
        )
