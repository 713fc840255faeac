"""The variables of an attempt: what the hub says, and what the owner wrote."""

from dataclasses import replace
from typing import Any

import pytest

from hublet.core.clock import now
from hublet.core.config.kinds import FlavorSize
from hublet.jobs.records import (
    Flavor,
    Initiator,
    InitiatorType,
    JobRecord,
    NetworkGroup,
    Spec,
    Stage,
)
from hublet.runtime.supervisor.environment import (
    environment_of,
    group_hostname,
    group_prefix,
    memory_text,
)
from hublet.tokens.delegations import Delegation

SIZE = FlavorSize(name="cpu-basic", cores=2, memory_bytes=16 * 2**30)
LONGEST_LABEL = 63


def a_job(*, owner_id: str = "ada", resource_group_id: str | None = None, **spec: Any) -> JobRecord:
    """A job; name only what the test is about."""
    return JobRecord(
        id="a" * 24,
        owner_id=owner_id,
        creator_id="ada",
        delegation=Delegation(user_id="ada"),
        resource_group_id=resource_group_id,
        initiator=Initiator(type=InitiatorType.user, id="ada"),
        spec=Spec(**{"image": "ubuntu", "environment": {}, "flavor": Flavor.cpu_basic} | spec),
        labels={},
        stage=Stage.scheduling,
        created_at=now(),
    )


def environment(job: JobRecord, size: FlavorSize = SIZE, **secrets: str) -> dict[str, str]:
    return environment_of(job, size, secrets=secrets, base_url="http://hub.test")


FACTS = {
    "HF_ENDPOINT": "http://hub.test",
    "JOB_ID": "a" * 24,
    "ACCELERATOR": "none",
    "CPU_CORES": "2",
    "MEMORY": "16Gi",
}


def test_a_job_hears_what_it_is_and_what_it_has() -> None:
    assert environment(a_job()) == FACTS


def test_a_job_with_devices_hears_of_its_accelerator() -> None:
    size = FlavorSize(name="t4-small", cores=2, memory_bytes=16 * 2**30, devices=("/dev/card0",))

    assert environment(a_job(), size) == FACTS | {"ACCELERATOR": "t4-small"}


def test_a_job_of_a_space_hears_which() -> None:
    job = a_job(space="ada/demo", image=None)

    assert environment(job) == FACTS | {"SPACE_ID": "ada/demo"}


def test_its_own_variables_and_secrets_are_there_and_the_secrets_win() -> None:
    job = a_job(environment={"MODE": "fast", "KEY": "open"})

    assert environment(job, KEY="secret") == FACTS | {"MODE": "fast", "KEY": "secret"}


def test_nobody_overwrites_what_the_hub_says() -> None:
    job = a_job(environment={"JOB_ID": "x", "HUB_NETWORK_GROUP_PREFIX": "x"}, network=GROUP)

    found = environment(job, MEMORY="x", CPU_CORES="x", ACCELERATOR="x")

    assert {name: found[name] for name in FACTS} == FACTS
    assert found["HUB_NETWORK_GROUP_PREFIX"] == group_prefix(job)


def test_a_job_may_speak_to_another_hub() -> None:
    job = a_job(environment={"HF_ENDPOINT": "https://other.example"})

    assert environment(job) == FACTS | {"HF_ENDPOINT": "https://other.example"}


@pytest.mark.parametrize(
    ("cores", "text"),
    [
        pytest.param(2.0, "2", id="a whole number has no fraction"),
        pytest.param(0.5, "0.5", id="half a core"),
    ],
)
def test_cores_are_written_as_short_as_they_can(cores: float, text: str) -> None:
    assert environment(a_job(), replace(SIZE, cores=cores))["CPU_CORES"] == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        pytest.param(2**30, "1Gi", id="one gibibyte"),
        pytest.param(512 * 2**20, "512Mi", id="half of one"),
        pytest.param(3 * 2**29, "1536Mi", id="one and a half"),
        pytest.param(2**30 + 1, "1024Mi", id="a byte more is cut"),
    ],
)
def test_memory_is_written_in_binary_units(size: int, text: str) -> None:
    assert memory_text(size) == text


GROUP = NetworkGroup(group="train")


def test_a_network_group_is_told_in_both_spellings() -> None:
    job = a_job(network=GROUP)
    hostname, prefix = group_hostname(job), group_prefix(job)

    assert environment(job) == FACTS | {
        "HUB_NETWORK_GROUP_HOSTNAME": hostname,
        "HUB_NETWORK_GROUP_PREFIX": prefix,
        "HF_NETWORK_GROUP_HOSTNAME": hostname,
        "HF_NETWORK_GROUP_PREFIX": prefix,
    }
    assert hostname.startswith("g")
    assert hostname.endswith("-train")
    assert prefix.startswith("a")
    assert prefix.endswith("-")


def test_the_longest_names_fit_into_a_label_of_dns() -> None:
    job = a_job(network=NetworkGroup(group="g" * 46))

    assert len(group_hostname(job)) <= LONGEST_LABEL
    assert len(group_prefix(job) + "a" * 34) <= LONGEST_LABEL


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(a_job(network=GROUP, owner_id="grace"), id="another owner"),
        pytest.param(a_job(network=GROUP, resource_group_id="b" * 24), id="a resource group"),
        pytest.param(a_job(network=NetworkGroup(group="eval")), id="another name"),
    ],
)
def test_groups_are_apart(other: JobRecord) -> None:
    job = a_job(network=GROUP)

    assert group_hostname(other) != group_hostname(job)
    assert group_prefix(other) != group_prefix(job)


def test_aliases_do_not_make_another_group() -> None:
    job, other = a_job(network=GROUP), a_job(network=replace(GROUP, aliases=("leader",)))

    assert environment(other) == environment(job)
