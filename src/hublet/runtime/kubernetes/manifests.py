"""Manifests of an attempt: its pod, the secret with its environment, and the one that pulls its image."""

import hashlib
import json
import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from hublet.core.config.kinds import ImageSource
from hublet.core.dataclasses import dataclass
from hublet.jobs.records import MAX_VARIABLE_BYTES
from hublet.runtime.records import LaunchOrder

Manifest = dict[str, Any]

HUB = "hublet/hub"
JOB = "hublet/job"
ATTEMPT = "hublet/attempt"
GROUP = "hublet/group"
# On every pod that the policy of the hub is about.
NETWORK = "hublet/network"
# Prefix of the labels that select the pods behind a host name of a group.
NAME_PREFIX = "name.hublet/"
# Annotations: all that a worker needs which did not launch the attempt.
FOLDER = "hublet/folder"
LOG = "hublet/log"
LOG_BYTES = "hublet/log-bytes"
TIMEOUT = "hublet/timeout"
GRACE = "hublet/grace"
VOLUMES = "hublet/volumes"
# Why the hub ended the pod: one of the two below.
ENDED_BY = "hublet/ended-by"
STOPPED, TIMED_OUT = "stop", "deadline"
# Keeps the pod, and its exit code, until the hub has read both to their end.
FINALIZER = "hublet/attempt"

JOB_CONTAINER, FILL_CONTAINER, WRITE_BACK_CONTAINER = "job", "volumes", "write-back"
HOME = "/home/job"
CONTENT = "/app"
VARIABLES = "/run/hublet"
VOLUMES_ROOT = "/volumes"
_QUEUE = "kueue.x-k8s.io/queue-name"
# The hub keeps the deadline itself; the pod's own is for a hub that is away.
_DEADLINE_MARGIN = 60
# For the files of a job that was stopped, beside its own grace.
_WRITE_BACK_GRACE = 30
_WRITE_BACK_DEADLINE = 3600
# The hub makes this file when the volumes are full.
READY = f"{VOLUMES_ROOT}/.ready"
_FILL = f"trap : TERM; while [ ! -e {READY} ]; do sleep 0.2 || sleep 1; done"
# What the job has written stays until the pod is removed: a worker that has read it may die before it
# is in its bucket, and the next one reads it again.
_KEEP = "trap : TERM; while :; do sleep 1; done"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSettings:
    """What the settings say about all pods."""

    # Label of this hub's objects in the namespace.
    hub: str
    data_dir: Path
    image_map: Sequence[ImageSource] = ()
    helper_image: str | None = None
    pull_secrets: Sequence[str] = ()
    queue: str | None = None
    user: int = 1000
    gpu_resource: str = "nvidia.com/gpu"
    disk_bytes: int | None = None
    network: str = "none"
    network_allow: Sequence[IPv4Network] = ()
    # The hub's own pods, where it runs in this cluster: only they reach ports of jobs.
    hub_pods: Mapping[str, str] = field(default_factory=dict)
    hub_namespace: str = "default"


def name_of(order: LaunchOrder) -> str:
    return f"hublet-{order.job_id}-{order.number}"


def group_label(order: LaunchOrder) -> str | None:
    """Return the value of the label that all members of a group have."""
    if order.group is None:
        return None
    return hashlib.sha256(order.group.key.encode()).hexdigest()[:24]


def pod_of(order: LaunchOrder, settings: PodSettings) -> Manifest:
    """Return the pod of an attempt; nothing secret is in it."""
    is_written = any(not bind.read_only for bind in order.binds)
    grace = math.ceil(order.grace_seconds) + (_WRITE_BACK_GRACE if is_written else 0)
    margin = _DEADLINE_MARGIN + (_WRITE_BACK_DEADLINE if is_written else 0)
    spec: Manifest = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": order.timeout_seconds + grace + margin,
        "terminationGracePeriodSeconds": max(grace, 1),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # Otherwise the job would be process 1 of its container, which the kernel spares signals.
        "shareProcessNamespace": True,
        "hostname": order.hostname[:63],
        "securityContext": pod_security(settings),
        "containers": [_job_container(order, settings)],
        "volumes": _volumes(order, settings),
    }
    if order.binds or order.content is not None:
        spec["initContainers"] = [_helper(FILL_CONTAINER, _FILL, settings)]
    if is_written:
        spec["containers"].append(_helper(WRITE_BACK_CONTAINER, _KEEP, settings))
    if pull_secrets := _pull_secrets(order, settings):
        spec["imagePullSecrets"] = [{"name": name} for name in pull_secrets]
    if order.node_labels:
        spec["nodeSelector"] = dict(order.node_labels)
    if order.gpus:
        spec["tolerations"] = [{"key": settings.gpu_resource, "operator": "Exists"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name_of(order),
            "labels": _labels(order, settings),
            "annotations": _annotations(order, settings),
            "finalizers": [FINALIZER],
        },
        "spec": spec,
    }


def pod_security(settings: PodSettings) -> Manifest:
    """Return what the Pod Security Standard "restricted" asks for."""
    return {
        "runAsNonRoot": True,
        "runAsUser": settings.user,
        "runAsGroup": settings.user,
        "fsGroup": settings.user,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _labels(order: LaunchOrder, settings: PodSettings) -> dict[str, str]:
    labels = {HUB: settings.hub, NETWORK: settings.hub}
    labels |= {JOB: order.job_id, ATTEMPT: str(order.number)}
    if settings.queue is not None:
        labels[_QUEUE] = settings.queue
    if order.group is not None and (group := group_label(order)) is not None:
        labels |= {GROUP: group} | {NAME_PREFIX + name: "true" for name in order.group.names}
    return labels


def _annotations(order: LaunchOrder, settings: PodSettings) -> dict[str, str]:
    def relative(path: Path) -> str:
        return str(path.absolute().relative_to(settings.data_dir))

    volumes: list[Manifest] = [
        {
            "source": relative(bind.source),
            "name": str(place),
            "written": not bind.read_only,
            "snapshot": None if bind.snapshot is None else relative(bind.snapshot),
        }
        for place, bind in enumerate(order.binds)
    ]
    if order.content is not None:
        volumes.append({"source": relative(order.content), "name": "content", "written": False})
    return {
        FOLDER: relative(order.folder),
        LOG: relative(order.log),
        LOG_BYTES: str(order.log_bytes),
        TIMEOUT: str(order.timeout_seconds),
        GRACE: str(order.grace_seconds),
        VOLUMES: json.dumps(volumes),
    }


def _job_container(order: LaunchOrder, settings: PodSettings) -> Manifest:
    container: Manifest = {
        "name": JOB_CONTAINER,
        "image": _image(order.image, settings.image_map),
        "env": _environment(order),
        "resources": _resources(order, settings),
        "securityContext": RESTRICTED,
        "terminationMessagePolicy": "File",
        "volumeMounts": _mounts(order),
        "workingDir": HOME if order.content is None else CONTENT,
    }
    # A cluster replaces $(NAME) in a command by a variable, unless the dollar is doubled.
    argv = [word.replace("$", "$$") for word in order.argv]
    if argv and order.after_entrypoint:
        return container | {"args": argv}
    return container | {"command": argv[:1], "args": argv[1:]} if argv else container


RESTRICTED: Manifest = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}


def _image(name: str, image_map: Sequence[ImageSource]) -> str:
    """Return the image for a name; an unmapped name is used as it is."""
    targets = (each.target for each in image_map if fnmatchcase(name, each.pattern))
    return next(targets, name)


def _environment(order: LaunchOrder) -> list[Manifest]:
    """Return references to the secret, which alone has the values."""
    variables: list[Manifest] = (
        [] if "HOME" in order.environment else [{"name": "HOME", "value": HOME}]
    )
    for place, (name, value) in enumerate(order.environment.items()):
        if is_long(name, value):
            variables.append({"name": f"{name}_FILE", "value": f"{VARIABLES}/{_key(place)}"})
        else:
            reference = {"name": name_of(order), "key": _key(place)}
            variables.append({"name": name, "valueFrom": {"secretKeyRef": reference}})
    return variables


def is_long(name: str, value: str) -> bool:
    """Tell whether a variable is too long for the kernel, and becomes a file."""
    return len(f"{name}={value}".encode()) > MAX_VARIABLE_BYTES


def _key(place: int) -> str:
    # By its place, because a key of a secret takes fewer characters than a name.
    return f"variable-{place}"


def secret_of(order: LaunchOrder, *, owner: Manifest) -> Manifest:
    """Return the secret with the environment; it goes with the pod that owns it."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name_of(order), "ownerReferences": [owner]},
        "immutable": True,
        "stringData": {_key(n): value for n, value in enumerate(order.environment.values())},
    }


def _pull_secrets(order: LaunchOrder, settings: PodSettings) -> list[str]:
    # A node tries each that fits the registry; the attempt's own is right for its image.
    own = [] if order.image_login is None else [_pull_secret_name(order)]
    return [*own, *settings.pull_secrets]


def _pull_secret_name(order: LaunchOrder) -> str:
    return f"{name_of(order)}-image"


def pull_secret_of(order: LaunchOrder, *, owner: Manifest) -> Manifest | None:
    """Return the secret by which a node pulls an image of this hub; None: the image needs none.

    It goes with the pod that owns it. Its token reads the repository of the image, nothing else, while
    the creator of the job may.
    """
    if order.image_login is None:
        return None
    host = order.image.partition("/")[0]
    user, password = order.image_login.username, order.image_login.password
    both = b64encode(f"{user}:{password}".encode()).decode()
    login = {"username": user, "password": password, "auth": both}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": _pull_secret_name(order), "ownerReferences": [owner]},
        "type": "kubernetes.io/dockerconfigjson",
        "immutable": True,
        "stringData": {".dockerconfigjson": json.dumps({"auths": {host: login}})},
    }


def _resources(order: LaunchOrder, settings: PodSettings) -> Manifest:
    sizes = {"cpu": f"{round(order.cores * 1000)}m", "memory": str(order.memory_bytes)}
    if settings.disk_bytes is not None:
        sizes["ephemeral-storage"] = str(settings.disk_bytes)
    gpus = {settings.gpu_resource: str(order.gpus)} if order.gpus else {}
    return {"requests": sizes, "limits": sizes | gpus}


def _volumes(order: LaunchOrder, settings: PodSettings) -> list[Manifest]:
    limit = {} if settings.disk_bytes is None else {"sizeLimit": str(settings.disk_bytes)}
    volumes: list[Manifest] = [
        {"name": "home", "emptyDir": dict(limit)},
        # As large as a runtime would never make it, for programs that share tensors.
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": str(order.memory_bytes)}},
    ]
    if order.binds or order.content is not None:
        volumes.append({"name": "volumes", "emptyDir": dict(limit)})
    long = [n for n, pair in enumerate(order.environment.items()) if is_long(*pair)]
    if long:
        items = [{"key": _key(place), "path": _key(place)} for place in long]
        secret = {"secretName": name_of(order), "items": items}
        volumes.append({"name": "variables", "secret": secret})
    return volumes


def _mounts(order: LaunchOrder) -> list[Manifest]:
    mounts: list[Manifest] = [
        {"name": "home", "mountPath": HOME},
        {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - a path in the pod.
    ]
    mounts += [
        {
            "name": "volumes",
            "mountPath": bind.target,
            "subPath": str(place),
            "readOnly": bind.read_only,
        }
        for place, bind in enumerate(order.binds)
    ]
    if order.content is not None:
        mounts.append({"name": "volumes", "mountPath": CONTENT, "subPath": "content"})
    if any(is_long(*pair) for pair in order.environment.items()):
        mounts.append({"name": "variables", "mountPath": VARIABLES, "readOnly": True})
    return mounts


def _helper(name: str, script: str, settings: PodSettings) -> Manifest:
    """Return a container that waits, and in which the hub reads or writes volumes."""
    small = {"cpu": "100m", "memory": str(128 * 2**20)}
    return {
        "name": name,
        "image": settings.helper_image,
        "command": ["/bin/sh", "-c", script],
        "resources": {"requests": small, "limits": small},
        "securityContext": RESTRICTED,
        "volumeMounts": [{"name": "volumes", "mountPath": VOLUMES_ROOT}],
    }


def owner_of(pod_name: str, uid: str) -> Manifest:
    """Return the reference by which a cluster removes an object after the pod that owns it."""
    return {"apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": uid}


def stop_patch(ended_by: str) -> Manifest:
    """Return the patch that ends a running pod as its own deadline would: TERM, grace, KILL.

    A deletion would take the log along.
    """
    return {
        "metadata": {"annotations": {ENDED_BY: ended_by}},
        "spec": {"activeDeadlineSeconds": 1},
    }
