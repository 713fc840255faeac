"""Network probe: tells whether a cluster enforces network policies, by two pods that try.

A network plugin that does not know policies ignores them silently.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from lightkube.resources.core_v1 import Pod

from hublet.core.ids import new_object_id
from hublet.runtime.errors import CannotAttach
from hublet.runtime.kubernetes import manifests
from hublet.runtime.kubernetes.cluster import CLUSTER_ERRORS, resource_of, text_of
from hublet.runtime.kubernetes.manifests import JOB_CONTAINER, Manifest
from hublet.runtime.kubernetes.pod_exec import run_exec
from hublet.runtime.kubernetes.pod_status import job_state, pending_reason
from hublet.runtime.kubernetes.runner import KubernetesRunner

_PORT = 8765
_START_SECONDS = 30.0
_POLL_SECONDS = 0.2
_LISTEN = (
    f"python3 -m http.server {_PORT} 2>/dev/null || while true; do echo | nc -l -p {_PORT}; done"
)
_PYTHON = f"import socket,sys; socket.create_connection((sys.argv[1], {_PORT}), 3)"
# Ends with 0 when the other pod is reached, and with 9 when it is not.
_CONNECT = (
    f"if command -v python3 >/dev/null; then python3 -c '{_PYTHON}' $0 2>/dev/null; "
    f"else nc -w 3 $0 {_PORT} </dev/null >/dev/null 2>&1; fi || exit 9"
)
_UNREACHABLE = 9
NO_HELPER = "Whether the cluster enforces network policies is not known: set jobs.helper_image."
ENFORCED = "The cluster enforces network policies."
IGNORED = "The cluster ignores network policies: every job can reach every other pod."


async def check_policies(runner: KubernetesRunner) -> tuple[bool | None, str]:
    """Return whether the cluster enforces network policies, and a sentence; None: nobody knows.

    Takes seconds: two pods are started and removed.
    """
    if runner.settings.helper_image is None:
        return None, NO_HELPER
    try:
        await runner.cluster.apply_policy(runner.settings)
        async with (
            asyncio.timeout(_START_SECONDS * 3),
            _pod(runner, "a") as (server, address),
            _pod(runner, "b") as (client, _),
        ):
            await _await_listener(runner, server)
            code = await _connect(runner, client, address)
            return (True, ENFORCED) if code == _UNREACHABLE else (False, IGNORED)
    except (CannotAttach, *CLUSTER_ERRORS) as error:
        return (
            None,
            f"Whether the cluster enforces network policies is not known: {text_of(error)}.",
        )


async def _await_listener(runner: KubernetesRunner, pod: str) -> None:
    """Wait until a pod reaches itself: without a listener nothing would be learnt."""
    while True:
        if not await _connect(runner, pod, "127.0.0.1"):
            return
        await asyncio.sleep(_POLL_SECONDS)


async def _connect(runner: KubernetesRunner, pod: str, address: str) -> int:
    code, _ = await run_exec(runner.cluster, pod, ["/bin/sh", "-c", _CONNECT, address])
    return code


@asynccontextmanager
async def _pod(runner: KubernetesRunner, mark: str) -> AsyncIterator[tuple[str, str]]:
    """Run a pod that listens; yield its name and address."""
    name = f"hublet-probe-{new_object_id()}-{mark}"
    api = runner.cluster.api
    await api.create(resource_of(Pod, _manifest(runner, name)))
    try:
        async with asyncio.timeout(_START_SECONDS):
            while True:
                pod = await api.get(Pod, name)
                state = job_state(pod)
                if state and state.running and pod.status and pod.status.podIP:
                    break
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise CannotAttach(pending_reason(await api.get(Pod, name)) or "no pod began") from None
    else:
        yield name, pod.status.podIP
    finally:
        with suppress(*CLUSTER_ERRORS):
            await api.delete(Pod, name, grace_period=0)


def _manifest(runner: KubernetesRunner, name: str) -> Manifest:
    """Return a pod under the policy of all jobs, but not one of the hub's attempts."""
    settings = runner.settings
    return {
        "metadata": {"name": name, "labels": {manifests.NETWORK: settings.hub}},
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": 120,
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "imagePullSecrets": [{"name": each} for each in settings.pull_secrets],
            "securityContext": manifests.pod_security(settings),
            "containers": [
                {
                    "name": JOB_CONTAINER,
                    "image": settings.helper_image,
                    "command": ["/bin/sh", "-c", _LISTEN],
                    "securityContext": manifests.RESTRICTED,
                }
            ],
        },
    }
