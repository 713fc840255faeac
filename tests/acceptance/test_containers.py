"""The registry with real tools: skopeo, buildah, podman, docker, containerd and oras push, pull, copy and delete."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from acceptance.client_versions import ENVIRONMENTS
from oci_images import ImageLayout, busybox_image, busybox_layer, needed
from patience import SOON_SECONDS
from processes import Place, Server, run_hublet, serving, wait_until

ORAS = ENVIRONMENTS / "oras" / "bin" / "python"
ORAS_SCRIPT = Path(__file__).parent / "clients" / "oras_artifacts.py"

# What tools that stand in the family of containers/image need to speak HTTP.
PLAIN = "--tls-verify=false"
BOTH_PLAIN = ("--src-tls-verify=false", "--dest-tls-verify=false")


@dataclass(frozen=True)
class RegistryHub:
    """A hub as tools see it: a host, and the tokens of two people."""

    server: Server
    tokens: Mapping[str, str]

    @property
    def host(self) -> str:
        return self.server.address.removeprefix("http://").replace("localhost", "127.0.0.1")

    def credentials(self, user: str = "ada") -> str:
        return f"{user}:{self.tokens[user]}"

    def tags(self, name: str) -> list[str]:
        with self.server.client(self.tokens["ada"]) as client:
            found: list[str] = client.get(f"/v2/{name}/tags/list").json()["tags"]
        return found

    def create_private(self, name: str) -> None:
        body = {"name": name, "type": "container", "private": True}
        with self.server.client(self.tokens["ada"]) as client:
            assert client.post("/api/repos/create", json=body).status_code == 200


@contextmanager
def a_hub(folder: Path) -> Iterator[RegistryHub]:
    place = Place(folder=folder)
    with serving(place, "--test-mode") as server:
        tokens = {}
        for user in ("ada", "bob"):
            for command in (["user", "add", user], ["token", "create", user]):
                ended = run_hublet(*command, *place.flags, folder=folder)
                assert ended.returncode == 0, ended.stderr
            tokens[user] = ended.stdout.strip()
        yield RegistryHub(server=server, tokens=tokens)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryHub]:
    with a_hub(tmp_path_factory.mktemp("hub")) as hub:
        yield hub


@pytest.fixture(scope="module")
def second_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryHub]:
    with a_hub(tmp_path_factory.mktemp("second")) as hub:
        yield hub


@dataclass(frozen=True)
class Tools:
    """Runs tools with a home, a storage and a file of credentials of their own."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def run(self, *command: str, expected: int | None = 0) -> str:
        needed(command[0])
        tried = subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, **self._environment(), **self.variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=SOON_SECONDS * 3,
        )
        text = tried.stdout + tried.stderr
        if expected is not None:
            assert tried.returncode == expected, f"{' '.join(command)}: {text}"
        else:
            assert tried.returncode != 0, text
        return tried.stdout if expected == 0 else text

    def _environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder),
            "REGISTRY_AUTH_FILE": str(self.folder / "auth.json"),
            "DOCKER_CONFIG": str(self.folder / "docker"),
            "XDG_RUNTIME_DIR": str(self.folder),
            "BUILDAH_ISOLATION": "chroot",
            "STORAGE_DRIVER": "vfs",
        }


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    (tmp_path / "auth.json").write_text("{}")
    return Tools(folder=tmp_path)


@pytest.fixture
def layout(tmp_path: Path) -> ImageLayout:
    return busybox_image(tmp_path / "layout")


@pytest.fixture
def storage() -> Iterator[list[str]]:
    """Flags with which buildah and podman keep images in a folder of the test; podman wants it short."""
    with tempfile.TemporaryDirectory(prefix="images-", ignore_cleanup_errors=True) as folder:
        yield ["--root", f"{folder}/s", "--runroot", f"{folder}/r", "--storage-driver", "vfs"]


def policy(tools: Tools) -> None:
    """Let tools of the family accept images without signatures, whatever the machine says."""
    path = tools.folder / ".config" / "containers"
    path.mkdir(parents=True, exist_ok=True)
    (path / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')


def test_skopeo_pushes_an_index_shows_it_and_deletes_it(
    hub: RegistryHub, tools: Tools, tmp_path: Path
) -> None:
    policy(tools)
    layout = ImageLayout(tmp_path / "layout")
    images = [layout.add_image([busybox_layer()], machine=name) for name in ("amd64", "arm64")]
    index = layout.add_index(images, tag="1")
    address = f"docker://{hub.host}/ada/tool:1"
    tools.run("skopeo", "login", PLAIN, "-u", "ada", "-p", hub.tokens["ada"], hub.host)

    tools.run(
        "skopeo", "copy", "--all", "--dest-tls-verify=false", f"oci:{layout.folder}:1", address
    )

    tags = json.loads(tools.run("skopeo", "list-tags", PLAIN, f"docker://{hub.host}/ada/tool"))
    assert tags["Tags"] == ["1"]
    raw = tools.run("skopeo", "inspect", PLAIN, "--raw", address)
    assert [each["digest"] for each in json.loads(raw)["manifests"]] == [
        image["digest"] for image in images
    ]
    copied = tmp_path / "copied"
    tools.run("skopeo", "copy", "--all", "--src-tls-verify=false", address, f"oci:{copied}:1")
    assert _tagged(copied) == index["digest"]
    tools.run("skopeo", "delete", PLAIN, address)
    assert hub.tags("ada/tool") == []


def _tagged(layout: Path) -> str:
    digest: str = json.loads((layout / "index.json").read_text())["manifests"][0]["digest"]
    return digest


def test_a_public_image_is_for_everybody_and_a_private_one_is_not(
    hub: RegistryHub, tools: Tools, layout: ImageLayout
) -> None:
    policy(tools)
    hub.create_private("ada/hidden")
    for name in ("open", "hidden"):
        tools.run(
            "skopeo", "copy", "--dest-tls-verify=false", "--dest-creds", hub.credentials(),
            f"oci:{layout.folder}:1", f"docker://{hub.host}/ada/{name}:1",
        )  # fmt: skip

    tools.run("skopeo", "inspect", PLAIN, f"docker://{hub.host}/ada/open:1")
    hidden = f"docker://{hub.host}/ada/hidden:1"
    tools.run("skopeo", "inspect", PLAIN, "--creds", hub.credentials(), hidden)
    assert "unauthorized" in tools.run("skopeo", "inspect", PLAIN, hidden, expected=None)
    other = tools.run(
        "skopeo", "inspect", PLAIN, "--creds", hub.credentials("bob"), hidden, expected=None
    )
    assert "name unknown" in other
    wrong = tools.run("skopeo", "inspect", PLAIN, "--creds", "ada:wrong", hidden, expected=None)
    assert "not a token of this hub" in wrong or "invalid username/password" in wrong


def test_nobody_pushes_to_the_image_of_another(
    hub: RegistryHub, tools: Tools, layout: ImageLayout
) -> None:
    policy(tools)
    refused = tools.run(
        "skopeo", "copy", "--dest-tls-verify=false", "--dest-creds", hub.credentials("bob"),
        f"oci:{layout.folder}:1", f"docker://{hub.host}/ada/stolen:1", expected=None,
    )  # fmt: skip

    assert "denied" in refused


def test_an_image_is_copied_from_hub_to_hub(
    hub: RegistryHub, second_hub: RegistryHub, tools: Tools, layout: ImageLayout, tmp_path: Path
) -> None:
    policy(tools)
    first, second = (f"docker://{each.host}/ada/copied:1" for each in (hub, second_hub))
    tools.run(
        "skopeo", "copy", "--dest-tls-verify=false", "--dest-creds", hub.credentials(),
        f"oci:{layout.folder}:1", first,
    )  # fmt: skip

    tools.run(
        "skopeo", "copy", *BOTH_PLAIN, "--dest-creds", second_hub.credentials(), first, second
    )

    copied = tmp_path / "copied"
    tools.run("skopeo", "copy", "--src-tls-verify=false", second, f"oci:{copied}:1")
    assert _tagged(copied) == _tagged(layout.folder)


def test_buildah_builds_from_scratch_and_podman_pulls(
    hub: RegistryHub, tools: Tools, storage: list[str], tmp_path: Path
) -> None:
    policy(tools)
    (tmp_path / "greeting").write_text("hello\n")
    container = tools.run("buildah", *storage, "from", "scratch").strip()
    tools.run("buildah", *storage, "copy", container, str(tmp_path / "greeting"), "/greeting")
    tools.run("buildah", *storage, "config", "--cmd", "cat /greeting", container)
    tools.run("buildah", *storage, "commit", container, "built")
    image = f"{hub.host}/ada/built:1"

    tools.run(
        "buildah", *storage, "push", PLAIN, "--creds", hub.credentials(), "built",
        f"docker://{image}",
    )  # fmt: skip

    podman = ["podman", *storage]
    tools.run(*podman, "pull", PLAIN, image)
    mounted = tools.run(*podman, "image", "mount", image).strip()
    assert (Path(mounted) / "greeting").read_text() == "hello\n"
    tools.run(*podman, "image", "unmount", image)
    tools.run(*podman, "login", PLAIN, "-u", "ada", "-p", hub.tokens["ada"], hub.host)
    tools.run(*podman, "push", PLAIN, image, f"{hub.host}/ada/again:1")
    assert hub.tags("ada/again") == ["1"]


def test_docker_logs_in_pushes_mounts_and_pulls(
    hub: RegistryHub, tools: Tools, layout: ImageLayout, tmp_path: Path, docker_engine: str
) -> None:
    policy(tools)
    tools.variables["DOCKER_HOST"] = docker_engine
    first, second = (f"{hub.host}/ada/{name}:1" for name in ("docked", "mounted"))
    archive = tmp_path / "image.tar"
    tools.run("skopeo", "copy", f"oci:{layout.folder}:1", f"docker-archive:{archive}:{first}")
    tools.run("docker", "load", "-i", str(archive))
    tools.run("docker", "login", "-u", "ada", "-p", hub.tokens["ada"], hub.host)
    tools.run("docker", "push", first)

    tools.run("docker", "tag", first, second)
    pushed = tools.run("docker", "push", second)

    assert pushed.count("Mounted from ada/docked") == 2
    tools.run("docker", "rmi", first, second)
    assert "Status: Downloaded" in tools.run("docker", "pull", second)
    assert tools.run("docker", "run", "--rm", "--network", "none", second) == "hello\n"
    tools.run("docker", "logout", hub.host)
    assert "unauthorized: To push" in tools.run("docker", "push", second, expected=None)


@contextmanager
def a_containerd(folder: Path) -> Iterator[str]:
    if os.geteuid() != 0:
        pytest.skip("Only root can start containerd.")
    config = folder / "containerd.toml"
    config.write_text(
        f'version = 2\nroot = "{folder / "root"}"\nstate = "{folder / "state"}"\n'
        'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n'
    )
    socket = folder / "containerd.sock"
    with (folder / "containerd.log").open("wb") as log:
        daemon = subprocess.Popen(
            [needed("containerd"), "--config", str(config), "--address", str(socket)],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(lambda: daemon.poll() is not None or _listens(socket), seconds=SOON_SECONDS)
        if daemon.poll() is not None:
            pytest.skip("containerd cannot start here.")
        yield str(socket)
    finally:
        daemon.terminate()
        daemon.wait(SOON_SECONDS)


def _listens(socket: Path) -> bool:
    tried = subprocess.run(
        ["ctr", "--address", str(socket), "version"], capture_output=True, check=False
    )
    return tried.returncode == 0


def test_containerd_pushes_and_fetches(
    hub: RegistryHub, tools: Tools, layout: ImageLayout, tmp_path: Path
) -> None:
    needed("ctr")
    archive = shutil.make_archive(str(tmp_path / "image"), "tar", layout.folder)
    image = f"{hub.host}/ada/contained:1"
    hub.create_private("ada/contained")
    with a_containerd(tmp_path) as socket:
        ctr = ["ctr", "--address", socket]
        base = f"{hub.host}/ada/contained"
        tools.run(*ctr, "images", "import", "--no-unpack", "--base-name", base, archive)
        login = ["--plain-http", "--user", hub.credentials()]
        tools.run(*ctr, "images", "push", *login, image)
        tools.run(*ctr, "images", "rm", image)

        tools.run(*ctr, "content", "fetch", *login, image)

        assert _tagged(layout.folder) in tools.run(*ctr, "images", "ls")
        tools.run(*ctr, "content", "fetch", "--plain-http", image, expected=None)


@pytest.mark.skipif(not ORAS.exists(), reason="oras is not installed: make acceptance does it.")
def test_oras_pushes_artifacts_and_what_refers_to_them(hub: RegistryHub, tmp_path: Path) -> None:
    (tmp_path / "chart.txt").write_text("a chart\n")
    (tmp_path / "sbom.json").write_text("{}")
    target = f"{hub.host}/ada/charts:1"

    ended = subprocess.run(
        [str(ORAS), str(ORAS_SCRIPT), hub.host, target, hub.tokens["ada"]],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=SOON_SECONDS * 3,
    )  # fmt: skip

    assert ended.returncode == 0, ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout)
    assert told["pulled"] == "a chart\n"
    assert told["tags"] == ["1", "sbom"]
    with hub.server.client(hub.tokens["ada"]) as client:
        found = client.get(f"/v2/ada/charts/referrers/{told['digest']}").json()["manifests"]
    assert [each["artifactType"] for each in found] == ["application/vnd.example.sbom"]
