"""Where the image of a name comes from: the map, this hub, or a registry that is allowed."""

from typing import Any

import pytest

from hublet.core.config import Settings, load
from hublet.core.outgoing import classify
from hublet.runtime.errors import CannotRun
from hublet.runtime.images.references import parse_reference
from hublet.runtime.images.sources import (
    endpoints_of,
    find_source,
    named_hosts,
    named_policy,
)


def on(**jobs: Any) -> Settings:
    named = {f"jobs.{name}": value for name, value in jobs.items()}
    return load(named | {"server.base_url": "https://hub.example.com"}, {})


@pytest.mark.parametrize(
    ("jobs", "name", "type_"),
    [
        ({}, "ubuntu", "mapped"),
        ({}, "No Name", "mapped"),
        ({}, "hub.example.com/ada/tool", "hub"),
        ({}, "localhost:8000/ada/tool", "hub"),
        ({"host_programs": False}, "hub.example.com/ada/tool", "hub"),
        ({"images": ["*=host"]}, "hub.example.com/ada/tool", "mapped"),
        ({"images": ["python:*=host"]}, "hub.example.com/ada/tool", "hub"),
        ({"registries": ["docker.io"]}, "python:3", "registry"),
        ({"registries": ["docker.io"], "images": ["python:*=host"]}, "python:3", "mapped"),
        ({"registries": ["*"]}, "ghcr.io/a/b", "registry"),
        ({"registries": ["*.example.org"]}, "a.example.org/b", "registry"),
        ({"registries": ["http://10.0.0.5:5000"]}, "10.0.0.5:5000/b", "registry"),
    ],
)
def test_the_map_counts_first_then_this_hub_then_registries(
    jobs: dict[str, Any], name: str, type_: str
) -> None:
    assert find_source(on(**jobs), name).type == type_


@pytest.mark.parametrize(
    ("jobs", "name", "sentence"),
    [
        ({"host_programs": False}, "ubuntu", "This hub has no image ubuntu."),
        ({"images": ["python:*=host"]}, "ubuntu", "This hub has no image ubuntu."),
        ({"registries": ["ghcr.io"]}, "ubuntu", "Images of docker.io are not allowed here: "),
        ({"registries": ["*.example.org"]}, "example.org/b", "Images of example.org are not"),
        ({"registries": ["ghcr.io"]}, "No Name", "'No Name' is not the name of an image: "),
    ],
)
def test_others_are_refused(jobs: dict[str, Any], name: str, sentence: str) -> None:
    with pytest.raises(CannotRun) as refused:
        find_source(on(**jobs), name)
    assert str(refused.value).startswith(sentence)


def test_the_image_of_a_space_is_never_pulled() -> None:
    assert find_source(on(registries=["*"]), "spaces/ada/app", is_space=True).type == "mapped"


def test_mirrors_come_before_the_registry() -> None:
    settings = on(registries=["docker.io"], registry_mirrors=["docker.io=https://m.example/hub"])
    found = list(endpoints_of(settings, parse_reference("python:3")))
    assert [each.url for each in found] == [
        "https://m.example/v2/hub",
        "https://registry-1.docker.io/v2",
    ]
    assert [each.host for each in found] == ["m.example", "docker.io"]


def test_only_registries_that_are_named_may_have_private_addresses() -> None:
    settings = on(registries=["*", "http://10.0.0.5:5000"])
    assert named_hosts(settings) == {"10.0.0.5:5000"}
    [open_] = endpoints_of(settings, parse_reference("10.0.0.6:5000/a"))
    [named] = endpoints_of(settings, parse_reference("10.0.0.5:5000/a"))
    assert (open_.is_named, open_.url) == (False, "https://10.0.0.6:5000/v2")
    assert (named.is_named, named.url) == (True, "http://10.0.0.5:5000/v2")


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        *(("10.1.2.3", True), ("127.0.0.1", True), ("192.168.1.1", True), ("fd12::1", True)),
        *(("169.254.169.254", False), ("100.100.100.200", False), ("fd00:ec2::254", False)),
        *(("0.0.0.0", False), ("224.0.0.1", False)),
    ],
)
def test_a_named_registry_never_leads_to_a_metadata_service(address: str, *, allowed: bool) -> None:
    assert classify(address, named_policy(on())).allowed is allowed
