"""Real tools push to a hub of two nodes whose content lies in a bucket, and pull layers from the bucket."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from acceptance.test_containers import BOTH_PLAIN, PLAIN, Tools, policy, storage, tools
from cluster import Cluster, cluster
from hublet.storage.contents import LARGEST_STREAMED
from object_storage import ObjectStorage
from oci_images import ImageLayout, busybox_layer, layer
from processes import Place

__all__ = ["storage", "tools"]

LARGE = LARGEST_STREAMED + 1


@pytest.fixture(scope="module")
def hub(
    object_storage: ObjectStorage,
    fresh_url: Callable[[], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    place = Place(folder=tmp_path_factory.mktemp("nodes"), database_url=fresh_url())
    with cluster(place, nodes=2, store=object_storage.url(place.folder.name)) as running:
        yield running


@pytest.fixture
def large_layout(tmp_path: Path) -> ImageLayout:
    """An image with a layer that the hub does not send itself."""
    layout = ImageLayout(tmp_path / "layout")
    weights = layer({"weights": (0o644, os.urandom(LARGE))})
    layout.add_image([busybox_layer(), weights], tag="1")
    return layout


def host_of(hub: Cluster) -> str:
    return hub.server.address.removeprefix("http://")


def credentials_of(hub: Cluster) -> str:
    return f"{hub.server.user}:{hub.server.token}"


def digest_in(folder: Path) -> str:
    digest: str = json.loads((folder / "index.json").read_text())["manifests"][0]["digest"]
    return digest


def blobs_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "blobs" / "sha256").iterdir()}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_skopeo_pushes_mounts_pulls_and_deletes(
    hub: Cluster, tools: Tools, large_layout: ImageLayout, host: str, tmp_path: Path
) -> None:
    # By the second name the bucket is on the hub's own host, so the hub sends layers itself.
    registry = f"docker://{host_of(hub).replace('localhost', host)}/admin"
    policy(tools)
    login = ("--dest-creds", credentials_of(hub))
    source = f"oci:{large_layout.folder}:1"
    tools.run("skopeo", "copy", "--dest-tls-verify=false", *login, source, f"{registry}/large:1")
    tools.run("skopeo", "copy", *BOTH_PLAIN, *login, f"{registry}/large:1", f"{registry}/mounted:1")

    back = tmp_path / "back"
    tools.run("skopeo", "copy", "--src-tls-verify=false", f"{registry}/mounted:1", f"oci:{back}:1")

    assert digest_in(back) == digest_in(large_layout.folder)
    assert blobs_in(back) == blobs_in(large_layout.folder)
    for name in ("large", "mounted"):
        address = f"{registry}/{name}:1"
        tools.run("skopeo", "delete", PLAIN, "--creds", credentials_of(hub), address)
        assert "manifest unknown" in tools.run("skopeo", "inspect", PLAIN, address, expected=None)


def test_buildah_builds_on_an_image_of_the_bucket(
    hub: Cluster, tools: Tools, tmp_path: Path, storage: list[str]
) -> None:
    policy(tools)
    (tmp_path / "weights").write_bytes(os.urandom(LARGE))
    image = f"{host_of(hub)}/admin/built"
    base = tools.run("buildah", *storage, "from", "scratch").strip()
    tools.run("buildah", *storage, "copy", base, str(tmp_path / "weights"), "/weights")
    tools.run("buildah", *storage, "commit", base, "built")
    push = ["buildah", *storage, "push", PLAIN, "--creds", credentials_of(hub), "built"]
    tools.run(*push, f"docker://{image}:1")
    tools.run("buildah", *storage, "rm", "-a")
    tools.run("buildah", *storage, "rmi", "-a", "-f")

    pulled = tools.run("buildah", *storage, "from", PLAIN, "--pull-always", f"{image}:1").strip()

    mounted = Path(tools.run("buildah", *storage, "mount", pulled).strip())
    assert (mounted / "weights").read_bytes() == (tmp_path / "weights").read_bytes()


def test_podman_pulls_from_the_bucket(
    hub: Cluster, tools: Tools, large_layout: ImageLayout, storage: list[str]
) -> None:
    policy(tools)
    image = f"{host_of(hub)}/admin/pulled:1"
    tools.run(
        "skopeo", "copy", "--dest-tls-verify=false", "--dest-creds", credentials_of(hub),
        f"oci:{large_layout.folder}:1", f"docker://{image}",
    )  # fmt: skip

    tools.run("podman", *storage, "pull", PLAIN, image)

    shown = json.loads(tools.run("podman", *storage, "image", "inspect", image))
    assert shown[0]["Digest"] == digest_in(large_layout.folder)


def test_docker_pulls_from_the_bucket(
    hub: Cluster, tools: Tools, large_layout: ImageLayout, docker_engine: str
) -> None:
    policy(tools)
    tools.variables["DOCKER_HOST"] = docker_engine
    image = f"{host_of(hub)}/admin/docked:1"
    tools.run(
        "skopeo", "copy", "--dest-tls-verify=false", "--dest-creds", credentials_of(hub),
        f"oci:{large_layout.folder}:1", f"docker://{image}",
    )  # fmt: skip

    tools.run("docker", "pull", image)

    ran = tools.run("docker", "run", "--rm", "--network", "none", image, "ls", "-l", "/weights")
    assert str(LARGE) in ran
    tools.run("docker", "rmi", image)
