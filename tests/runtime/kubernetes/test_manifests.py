"""The objects of an attempt in a cluster."""

import json
from base64 import b64encode
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from hublet.core.config.kinds import FLAVORS, ImageSource
from hublet.runtime.kubernetes import manifests, network_manifests
from hublet.runtime.kubernetes.manifests import PodSettings
from hublet.runtime.records import BindMount, GroupMembership, ImageLogin
from runtime.attempts import an_order

OWNER = manifests.owner_of("hublet-x-1", "u1")


def settings(data_dir: Path, **changes: Any) -> PodSettings:
    return PodSettings(hub="h1", data_dir=data_dir, helper_image="helper", **changes)


def job_of(pod: dict[str, Any]) -> dict[str, Any]:
    return next(each for each in pod["spec"]["containers"] if each["name"] == "job")


def test_nothing_secret_is_in_the_pod_and_no_command_is_expanded(tmp_path: Path) -> None:
    order = an_order(tmp_path, "sh", "-c", "echo $(KEY) $HOME", environment={"KEY": "s3cret"})

    pod = manifests.pod_of(order, settings(tmp_path))

    assert "s3cret" not in str(pod)
    assert job_of(pod)["args"] == ["-c", "echo $$(KEY) $$HOME"]
    reference = {"name": manifests.name_of(order), "key": "variable-0"}
    assert {"name": "KEY", "valueFrom": {"secretKeyRef": reference}} in job_of(pod)["env"]
    secret = manifests.secret_of(order, owner=OWNER)
    assert secret["stringData"] == {"variable-0": "s3cret"}
    assert secret["metadata"]["ownerReferences"] == [OWNER]


def test_a_pod_is_restricted_ends_by_itself_and_is_kept(tmp_path: Path) -> None:
    order = an_order(tmp_path, "true", timeout_seconds=100, grace_seconds=2.5)

    pod = manifests.pod_of(order, settings(tmp_path, pull_secrets=["pull"], queue="team"))

    spec = pod["spec"]
    assert (spec["restartPolicy"], spec["automountServiceAccountToken"]) == ("Never", False)
    assert (spec["activeDeadlineSeconds"], spec["terminationGracePeriodSeconds"]) == (163, 3)
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert job_of(pod)["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    assert pod["metadata"]["finalizers"] == [manifests.FINALIZER]
    assert pod["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"


def test_an_image_of_the_hub_is_pulled_by_a_secret_of_its_own(tmp_path: Path) -> None:
    login = ImageLogin(username="job", password="t0ken")
    image = "hub.example.com:8000/ada/tool@sha256:1"
    order = an_order(tmp_path, "true", image=image, image_login=login)

    pod = manifests.pod_of(order, settings(tmp_path, pull_secrets=["pull"]))
    secret = manifests.pull_secret_of(order, owner=OWNER)

    assert secret is not None
    name = secret["metadata"]["name"]
    assert pod["spec"]["imagePullSecrets"] == [{"name": name}, {"name": "pull"}]
    assert name != manifests.secret_of(order, owner=OWNER)["metadata"]["name"]
    assert "t0ken" not in str(pod)
    assert secret["type"] == "kubernetes.io/dockerconfigjson"
    assert secret["metadata"]["ownerReferences"] == [OWNER]
    assert json.loads(secret["stringData"][".dockerconfigjson"]) == {
        "auths": {
            "hub.example.com:8000": {
                "username": "job",
                "password": "t0ken",
                "auth": b64encode(b"job:t0ken").decode(),
            }
        }
    }


def test_another_image_needs_no_secret_of_its_own(tmp_path: Path) -> None:
    order = an_order(tmp_path, "true", image="ubuntu")

    assert manifests.pull_secret_of(order, owner=OWNER) is None
    assert "imagePullSecrets" not in manifests.pod_of(order, settings(tmp_path))["spec"]


def test_a_flavor_becomes_resources_and_nodes(tmp_path: Path) -> None:
    (size,) = FLAVORS.read("t4-small=1.5:1G:gpu=2:node=pool:gpu:node=example.com/zone:a")
    order = an_order(
        tmp_path,
        "true",
        cores=size.cores,
        memory_bytes=size.memory_bytes,
        gpus=size.gpus,
        node_labels=size.node_labels,
    )

    pod = manifests.pod_of(order, settings(tmp_path, disk_bytes=2**30))

    sizes = {"cpu": "1500m", "memory": "1073741824", "ephemeral-storage": "1073741824"}
    assert job_of(pod)["resources"] == {
        "requests": sizes,
        "limits": sizes | {"nvidia.com/gpu": "2"},
    }
    assert pod["spec"]["nodeSelector"] == {"pool": "gpu", "example.com/zone": "a"}
    assert pod["spec"]["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]


@pytest.mark.parametrize("text", ["a=1:1G:gpu=0", "a=1:1G:gpu=x", "a=1:1G:node=x", "a=1:1G:gpu=65"])
def test_wrong_parts_of_a_flavor_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        FLAVORS.read(text)


def test_volumes_are_filled_before_and_read_after(tmp_path: Path) -> None:
    binds = (
        BindMount(source=tmp_path / "checkout", target="/data", read_only=True),
        BindMount(source=tmp_path / "bucket", target="/out", read_only=False),
    )

    pod = manifests.pod_of(an_order(tmp_path, "true", binds=binds), settings(tmp_path))

    assert [each["name"] for each in pod["spec"]["initContainers"]] == ["volumes"]
    assert [each["name"] for each in pod["spec"]["containers"]] == ["job", "write-back"]
    mounts = [
        (each["mountPath"], each["subPath"], each["readOnly"])
        for each in job_of(pod)["volumeMounts"]
        if each["name"] == "volumes"
    ]
    assert mounts == [("/data", "0", True), ("/out", "1", False)]
    # Time for the files of a job that is stopped.
    assert pod["spec"]["terminationGracePeriodSeconds"] == 35


def test_a_long_variable_becomes_a_file(tmp_path: Path) -> None:
    order = an_order(tmp_path, "true", environment={"LONG": "x" * 200_000})

    job = job_of(manifests.pod_of(order, settings(tmp_path)))

    assert {"name": "LONG_FILE", "value": "/run/hublet/variable-0"} in job["env"]
    assert {"name": "variables", "mountPath": "/run/hublet", "readOnly": True} in job[
        "volumeMounts"
    ]


def test_images_are_mapped(tmp_path: Path) -> None:
    mapped = settings(tmp_path, image_map=[ImageSource(pattern="python:*", target="local/python")])

    images = [
        job_of(manifests.pod_of(an_order(tmp_path, "true", image=image), mapped))["image"]
        for image in ("python:3.12", "ubuntu")
    ]

    assert images == ["local/python", "ubuntu"]


def test_a_group_has_a_service_for_each_name_and_a_policy(tmp_path: Path) -> None:
    group = GroupMembership(key="ada//train", names=("g1-train", "a1-worker"))
    order = an_order(tmp_path, "true", group=group)

    pod = manifests.pod_of(order, settings(tmp_path))
    services = network_manifests.services_of(order, settings(tmp_path), owner=OWNER)
    policy = network_manifests.group_policy(order, settings(tmp_path), owner=OWNER)

    assert [each["metadata"]["name"] for each in services] == ["g1-train", "a1-worker"]
    labels = pod["metadata"]["labels"].items()
    assert all(each["spec"]["selector"].items() <= labels for each in services)
    members = policy["spec"]["podSelector"]["matchLabels"]
    assert members.items() <= labels
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": {"matchLabels": members}}]}]


@pytest.mark.parametrize(
    ("network", "reached"),
    [
        ("none", []),
        ("outbound", ["0.0.0.0/0", "10.1.0.0/16"]),
        ("shared", None),
    ],
)
def test_nobody_reaches_a_job_and_it_reaches_what_the_settings_say(
    tmp_path: Path, network: str, reached: list[str] | None
) -> None:
    policy = network_manifests.hub_policy(
        settings(tmp_path, network=network, network_allow=[IPv4Network("10.1.0.0/16")])
    )["spec"]

    assert policy["ingress"] == []
    if reached is None:
        assert policy["egress"] == [{}]
    else:
        blocks = [to["ipBlock"]["cidr"] for rule in policy["egress"] for to in rule.get("to", ())]
        assert blocks == reached
        assert policy["egress"][0]["ports"][0] == {"protocol": "UDP", "port": 53}


def test_only_the_hubs_own_pods_reach_a_job_where_the_hub_is_in_the_cluster(tmp_path: Path) -> None:
    inside = settings(tmp_path, hub_pods={"app": "hublet"}, hub_namespace="hub")

    assert network_manifests.hub_policy(inside)["spec"]["ingress"] == [
        {
            "from": [
                {
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "hub"}},
                    "podSelector": {"matchLabels": {"app": "hublet"}},
                }
            ]
        }
    ]


@pytest.mark.parametrize(
    ("flavor", "changes", "limits", "tolerations"),
    [
        pytest.param("cpu-basic=2:16G", {}, {}, None, id="no card"),
        pytest.param(
            "t4-small=4:16G:gpu=1",
            {},
            {"nvidia.com/gpu": "1"},
            [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            id="a card of the usual maker",
        ),
        pytest.param(
            "mi300=8:64G:gpu=4",
            {"gpu_resource": "amd.com/gpu"},
            {"amd.com/gpu": "4"},
            [{"key": "amd.com/gpu", "operator": "Exists"}],
            id="cards of another maker",
        ),
        pytest.param(
            "slice=2:8G:gpu=1",
            {"gpu_resource": "nvidia.com/mig-1g.5gb"},
            {"nvidia.com/mig-1g.5gb": "1"},
            [{"key": "nvidia.com/mig-1g.5gb", "operator": "Exists"}],
            id="a slice of a card",
        ),
    ],
)
def test_cards_are_limits_only_and_their_taint_is_tolerated(
    tmp_path: Path,
    flavor: str,
    changes: dict[str, Any],
    limits: dict[str, str],
    tolerations: list[dict[str, str]] | None,
) -> None:
    (size,) = FLAVORS.read(flavor)
    order = an_order(
        tmp_path, "true", cores=size.cores, memory_bytes=size.memory_bytes, gpus=size.gpus
    )

    pod = manifests.pod_of(order, settings(tmp_path, **changes))

    resources = job_of(pod)["resources"]
    assert resources["limits"] == resources["requests"] | limits
    assert set(resources["requests"]) == {"cpu", "memory"}
    assert pod["spec"].get("tolerations") == tolerations
    assert {"name": "shm", "mountPath": "/dev/shm"} in job_of(pod)["volumeMounts"]


@pytest.mark.parametrize("queue", [None, "team-a"])
def test_kueue_takes_a_pod_by_its_label_alone(tmp_path: Path, queue: str | None) -> None:
    pod = manifests.pod_of(an_order(tmp_path, "true"), settings(tmp_path, queue=queue))

    assert pod["metadata"]["labels"].get("kueue.x-k8s.io/queue-name") == queue
    # Kueue sets the gate by itself, and one of ours would never be opened.
    assert "schedulingGates" not in pod["spec"]


def test_the_pod_of_an_attempt_is_what_the_reference_says(tmp_path: Path) -> None:
    order = an_order(tmp_path, "true", job_id="abc", number=2, timeout_seconds=10, grace_seconds=5)

    pod = manifests.pod_of(order, settings(tmp_path))

    assert pod["metadata"]["name"] == "hublet-abc-2"
    spec = pod["spec"]
    assert {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "activeDeadlineSeconds": 75,
        "terminationGracePeriodSeconds": 5,
    }.items() <= spec.items()
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert job_of(pod)["securityContext"]["allowPrivilegeEscalation"] is False
    shm = next(each for each in spec["volumes"] if each["name"] == "shm")
    assert shm["emptyDir"] == {"medium": "Memory", "sizeLimit": str(order.memory_bytes)}


def test_every_field_is_one_that_the_cluster_knows(tmp_path: Path) -> None:
    codecs = pytest.importorskip("lightkube.codecs", reason="hublet[kubernetes] is not installed")
    order = an_order(
        tmp_path,
        "true",
        gpus=1,
        node_labels={"pool": "gpu"},
        environment={"KEY": "value", "LONG": "x" * 200_000},
        binds=(BindMount(source=tmp_path / "bucket", target="/out", read_only=False),),
        group=GroupMembership(key="ada//train", names=("g1-train",)),
    )
    full = settings(
        tmp_path, queue="team", pull_secrets=["pull"], disk_bytes=2**30, hub_pods={"app": "hublet"}
    )

    for manifest in (
        manifests.pod_of(order, full),
        manifests.secret_of(order, owner=OWNER),
        *network_manifests.services_of(order, full, owner=OWNER),
        network_manifests.hub_policy(full),
        network_manifests.group_policy(order, full, owner=OWNER),
    ):
        # A field that the cluster does not know gets lost on the way.
        assert codecs.from_dict(manifest).to_dict() == manifest
