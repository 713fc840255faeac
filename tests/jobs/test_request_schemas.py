"""How a job is asked for: what is taken, what is refused, and with which sentence."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from hublet.core.http.validation import describe_problems
from hublet.jobs.records import Arch, Flavor
from hublet.jobs.request_schemas import ImageJobRequest, JobRequest, SpaceJobRequest

REQUEST: TypeAdapter[SpaceJobRequest | ImageJobRequest] = TypeAdapter(JobRequest)
IMAGE = {"dockerImage": "ubuntu", "flavor": "cpu-basic"}
VOLUME = {"type": "model", "source": "ada/engine", "mountPath": "/data"}
# What a request has that says nothing of it.
DEFAULTS = {"environment": {}, "timeoutSeconds": None, "attempts": 1}


def asked(body: Any) -> dict[str, Any]:
    return REQUEST.validate_python(body).model_dump(mode="json")


def refusal(body: Any) -> str:
    with pytest.raises(ValidationError) as refused:
        REQUEST.validate_python(body)
    errors = [{**error, "loc": ("body", "job", *error["loc"])} for error in refused.value.errors()]
    return describe_problems(errors)


def test_the_flavors_are_those_of_the_interface_in_its_order() -> None:
    assert " ".join(Flavor) == (
        "cpu-basic cpu-upgrade cpu-performance cpu-xl sprx8 zero-a10g t4-small t4-medium l4x1 "
        "l4x4 l40sx1 l40sx4 l40sx8 a10g-small a10g-large a10g-largex2 a10g-largex4 a100-large "
        "a100x4 a100x8 h200 h200x2 h200x4 h200x8 rtx-pro-6000 rtx-pro-6000x2 rtx-pro-6000x4 "
        "rtx-pro-6000x8 inf2x6"
    )
    assert list(Arch) == ["amd64", "arm64"]


@pytest.mark.parametrize(
    ("body", "variant"),
    [
        pytest.param(IMAGE, ImageJobRequest, id="an image"),
        pytest.param({"spaceId": "ada/app", "flavor": "h200"}, SpaceJobRequest, id="a space"),
        pytest.param(IMAGE | {"spaceId": "ada/app"}, SpaceJobRequest, id="both: the space counts"),
        pytest.param(IMAGE | {"spaceId": ""}, ImageJobRequest, id="an image and no space"),
        pytest.param(
            {"spaceId": "ada/app", "dockerImage": "", "flavor": "h200"},
            SpaceJobRequest,
            id="a space and no image",
        ),
    ],
)
def test_the_variant_is_told_by_what_is_given(body: dict[str, Any], variant: type) -> None:
    assert type(REQUEST.validate_python(body)) is variant
    assert asked(body) == DEFAULTS | body


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"arguments": []}, id="no arguments"),
        pytest.param({"arguments": ["", "-v"]}, id="arguments, also empty ones"),
        pytest.param({"command": ["sh", "-c", "true"]}, id="a command"),
        pytest.param({"environment": {"AB": "", "a_1": "ü"}}, id="an environment"),
        pytest.param({"secrets": {"A": "1", "a_b": ""}}, id="secrets, also of one letter"),
        pytest.param({"arch": "arm64"}, id="an architecture"),
        pytest.param({"timeoutSeconds": 1}, id="the shortest time"),
        pytest.param({"timeoutSeconds": None}, id="no end"),
        pytest.param({"attempts": 3}, id="attempts"),
        pytest.param({"labels": {"name": "x", "a-b_C": ""}}, id="labels, also empty ones"),
        pytest.param({"labels": {"k" * 100: "v" * 100}}, id="labels as long as they may be"),
        pytest.param({"volumes": [VOLUME]}, id="a volume"),
        pytest.param(
            {"volumes": [VOLUME | {"revision": "main", "readOnly": True, "path": "a/b"}]},
            id="a volume with all that a repository may have",
        ),
        pytest.param(
            {"volumes": [VOLUME | {"type": "bucket", "readOnly": False}]}, id="a bucket to write to"
        ),
        pytest.param({"expose": {"ports": [1, 65535]}}, id="ports"),
        pytest.param({"expose": {"ports": [], "portsPublic": []}}, id="no ports"),
        pytest.param({"expose": {"ports": [80, 81], "portsPublic": [81]}}, id="a public port"),
        pytest.param({"expose": {"ports": list(range(1, 21))}}, id="as many ports as there may be"),
        pytest.param({"ssh": {"enabled": True}}, id="ssh"),
        pytest.param({"network": {"group": "a" * 46, "aliases": ["b" * 34] * 20}}, id="a network"),
        pytest.param({"network": {"group": "a-1", "aliases": []}}, id="a network without aliases"),
        pytest.param({"resourceGroupId": "0123456789abcdef01234567"}, id="a resource group"),
    ],
)
def test_what_a_job_may_have(fields: dict[str, Any]) -> None:
    assert asked(IMAGE | fields) == DEFAULTS | IMAGE | fields


@pytest.mark.parametrize(
    ("fields", "stored"),
    [
        pytest.param({"ssh": {}}, {"ssh": {"enabled": False}}, id="ssh is off"),
        pytest.param(
            {"network": {"group": "a"}}, {"network": {"group": "a", "aliases": []}}, id="no aliases"
        ),
        pytest.param(
            {"resourceGroupId": "ABCDEF" * 4},
            {"resourceGroupId": "abcdef" * 4},
            id="a resource group in capitals",
        ),
    ],
)
def test_what_is_left_out_or_written_otherwise(
    fields: dict[str, Any], stored: dict[str, Any]
) -> None:
    assert asked(IMAGE | fields) == DEFAULTS | IMAGE | stored


IN_A_NETWORK = "must match ^[a-z0-9]([a-z0-9-]*[a-z0-9])?$."
TWO_PARTS = r"must match ^[^/\s]+/[^/\s]+$."
FLAVORS = ", ".join(f"'{flavor}'" for flavor in list(Flavor)[:-1]) + " or 'inf2x6'"


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        pytest.param("ubuntu", "job must be an object.", id="text"),
        pytest.param({}, "job: a job needs spaceId or dockerImage.", id="nothing"),
        pytest.param(
            {"dockerImage": "", "flavor": "h200"},
            "job.dockerImage must have at least 1 character(s).",
            id="an empty image",
        ),
        pytest.param(
            {"spaceId": "", "flavor": "h200"},
            "job.spaceId must have at least 1 character(s).",
            id="an empty space",
        ),
        pytest.param(
            {"spaceId": 5, "flavor": "h200"}, "job.spaceId must be a string.", id="a number"
        ),
        pytest.param({"dockerImage": "x"}, "job.flavor is required.", id="no flavor"),
        pytest.param(
            {"spaceId": "x", "flavor": "huge", "timeout": 5},
            f"job.flavor must be one of {FLAVORS}. job.timeout is not a known field.",
            id="two problems, and nothing of the other variant",
        ),
    ],
)
def test_what_is_no_job(body: Any, sentence: str) -> None:
    assert refusal(body) == sentence


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"command": []}, "job.command must have at least 1 item(s)."),
        ({"command": ["sh", ""]}, "job.command[1] must have at least 1 character(s)."),
        ({"command": "sh"}, "job.command must be an array."),
        ({"arguments": [1]}, "job.arguments[0] must be a string."),
        ({"arguments": ["\ud800"]}, "job.arguments[0] must be valid Unicode text."),
        ({"arguments": ["x" * 65_537]}, "job.arguments[0] must have at most 65536 characters."),
        ({"command": ["x" * 65_537]}, "job.command[0] must have at most 65536 characters."),
        ({"dockerImage": "x" * 513}, "job.dockerImage must have at most 512 characters."),
        ({"spaceId": "x" * 513}, "job.spaceId must have at most 512 characters."),
        (
            {"environment": {"A": "x"}},
            "job.environment: each name must match ^[a-zA-Z][_a-zA-Z0-9]+$.",
        ),
        (
            {"environment": {"_AB": "x"}},
            "job.environment: each name must match ^[a-zA-Z][_a-zA-Z0-9]+$.",
        ),
        (
            {"environment": {"AB\n": "x"}},
            "job.environment: each name must match ^[a-zA-Z][_a-zA-Z0-9]+$.",
        ),
        ({"environment": {"AB": 1}}, "job.environment.AB must be a string."),
        ({"environment": {"AB": "\ud800"}}, "job.environment.AB must be valid Unicode text."),
        (
            {"environment": {"AB": "x" * 65_537}},
            "job.environment.AB must have at most 65536 characters.",
        ),
        ({"environment": []}, "job.environment must be an object."),
        ({"secrets": {"1": "x"}}, "job.secrets: each name must match ^[a-zA-Z][_a-zA-Z0-9]*$."),
        ({"secrets": {"": "x"}}, "job.secrets: each name must match ^[a-zA-Z][_a-zA-Z0-9]*$."),
        ({"secrets": {"A" * 257: "x"}}, "job.secrets: each name must have at most 256 characters."),
        ({"secrets": {"A": "x" * 65_537}}, "job.secrets.A must have at most 65536 characters."),
        ({"arch": "x86"}, "job.arch must be one of 'amd64' or 'arm64'."),
        ({"timeoutSeconds": 0}, "job.timeoutSeconds must be greater than 0."),
        ({"timeoutSeconds": 1.5}, "job.timeoutSeconds must be an integer."),
        ({"timeoutSeconds": "5"}, "job.timeoutSeconds must be an integer."),
        ({"attempts": 0}, "job.attempts must be at least 1."),
        ({"attempts": True}, "job.attempts must be an integer."),
        ({"labels": {"a.b": "x"}}, "job.labels: each name must match ^[a-zA-Z0-9_-]+$."),
        ({"labels": {"": "x"}}, "job.labels: each name must match ^[a-zA-Z0-9_-]+$."),
        ({"labels": {"a": "x y"}}, "job.labels.a must match ^[a-zA-Z0-9_-]*$."),
        ({"labels": {"a": "x" * 101}}, "job.labels.a must have at most 100 characters."),
        ({"labels": {"a" * 101: "x"}}, "job.labels: each name must have at most 100 characters."),
        ({"volumes": []}, "job.volumes must have at least 1 item(s)."),
        (
            {"volumes": [VOLUME | {"type": "kernel"}]},
            "job.volumes[0].type must be one of 'bucket', 'model', 'dataset' or 'space'.",
        ),
        ({"volumes": [VOLUME | {"source": "engine"}]}, f"job.volumes[0].source {TWO_PARTS}"),
        ({"volumes": [VOLUME | {"source": "a/b/c"}]}, f"job.volumes[0].source {TWO_PARTS}"),
        ({"volumes": [VOLUME | {"mountPath": "data"}]}, "job.volumes[0].mountPath must match ^/."),
        (
            {"volumes": [VOLUME, {"type": "model"}]},
            "job.volumes[1].source is required. job.volumes[1].mountPath is required.",
        ),
        (
            {"volumes": [VOLUME | {"type": "bucket", "revision": "main"}]},
            "job.volumes[0]: a bucket has no revision.",
        ),
        (
            {"volumes": [VOLUME | {"readOnly": False}]},
            "job.volumes[0]: a repository is mounted read-only, so readOnly must be true.",
        ),
        ({"expose": {}}, "job.expose.ports is required."),
        ({"expose": {"ports": [0]}}, "job.expose.ports[0] must be at least 1."),
        ({"expose": {"ports": [65536]}}, "job.expose.ports[0] must be at most 65535."),
        ({"expose": {"ports": ["80"]}}, "job.expose.ports[0] must be an integer."),
        (
            {"expose": {"ports": list(range(1, 22))}},
            "job.expose.ports must have at most 20 items.",
        ),
        (
            {"expose": {"ports": [80], "portsPublic": [80] * 21}},
            "job.expose.portsPublic must have at most 20 items.",
        ),
        (
            {"expose": {"ports": [80], "portsPublic": [81]}},
            "job.expose: each of portsPublic must also be one of ports.",
        ),
        ({"ssh": {"enabled": "yes"}}, "job.ssh.enabled must be true or false."),
        ({"network": {}}, "job.network.group is required."),
        ({"network": {"group": "a" * 47}}, "job.network.group must have at most 46 characters."),
        ({"network": {"group": "a-"}}, f"job.network.group {IN_A_NETWORK}"),
        ({"network": {"group": "A"}}, f"job.network.group {IN_A_NETWORK}"),
        (
            {"network": {"group": "a", "aliases": ["b" * 35]}},
            "job.network.aliases[0] must have at most 34 characters.",
        ),
        (
            {"network": {"group": "a", "aliases": ["-b"]}},
            f"job.network.aliases[0] {IN_A_NETWORK}",
        ),
        (
            {"network": {"group": "a", "aliases": ["b"] * 21}},
            "job.network.aliases must have at most 20 items.",
        ),
        ({"resourceGroupId": "abc"}, "job.resourceGroupId must match ^[0-9a-fA-F]{24}$."),
    ],
)
def test_what_a_job_cannot_have(fields: dict[str, Any], sentence: str) -> None:
    assert refusal(IMAGE | fields) == sentence
