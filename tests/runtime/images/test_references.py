"""Names of images, as container tools read them."""

import pytest

from hublet.runtime.errors import CannotRun
from hublet.runtime.images.references import parse_reference

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("ubuntu", "docker.io/library/ubuntu:latest"),
        ("python:3.12", "docker.io/library/python:3.12"),
        ("ada/tool", "docker.io/ada/tool:latest"),
        ("docker.io/ubuntu", "docker.io/library/ubuntu:latest"),
        ("index.docker.io/library/ubuntu:24.04", "docker.io/library/ubuntu:24.04"),
        ("ghcr.io/ada/tool:1", "ghcr.io/ada/tool:1"),
        ("GHCR.io/ada/tool", "ghcr.io/ada/tool:latest"),
        ("localhost/tool", "localhost/tool:latest"),
        ("localhost:5000/a/b/c:V-1_2.x", "localhost:5000/a/b/c:V-1_2.x"),
        ("hub:8000/ada/tool", "hub:8000/ada/tool:latest"),
        ("hub/ada/tool", "docker.io/hub/ada/tool:latest"),
        ("[::1]:5000/tool:2", "[::1]:5000/tool:2"),
        (f"ubuntu@{DIGEST}", f"docker.io/library/ubuntu@{DIGEST}"),
        (f"ghcr.io/ada/tool:1@{DIGEST}", f"ghcr.io/ada/tool@{DIGEST}"),
        ("a__b/c.d-e--f", "docker.io/a__b/c.d-e--f:latest"),
    ],
)
def test_a_name_means_what_it_means_everywhere(text: str, complete: str) -> None:
    assert str(parse_reference(text)) == complete


@pytest.mark.parametrize(
    "text",
    [
        *("", "/", "Ubuntu", "ubuntu:", "ubuntu:-1", f"ubuntu:{'1' * 129}", "a//b", "a/../b"),
        *("ubuntu@sha256:1", "ubuntu@", "ghcr.io/", "ghcr.io/Ada/x", "a b", "ubuntu\n", "-a.b/c"),
        *(f"ghcr.io/{'a/' * 150}b", "http://ghcr.io/a", "é.com/a", "a.com:x/b", "a@b@c"),
    ],
)
def test_what_is_no_name_is_refused_with_the_rule(text: str) -> None:
    with pytest.raises(CannotRun, match=r"is not the name of an image: .+"):
        parse_reference(text)


def test_docker_hub_answers_under_another_name() -> None:
    assert parse_reference("ubuntu").api_host == "registry-1.docker.io"
    assert parse_reference("ghcr.io/a/b").api_host == "ghcr.io"
