"""OCI images: which one is taken, what it says about how it is run, and what is refused."""

import gzip
import hashlib
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from hublet.core.config.kinds import ImageSource
from hublet.core.database import Database
from hublet.jobs.runners import images, oci
from hublet.jobs.runners.oci import Defaults
from hublet.jobs.runners.records import Bind, CannotRun
from hublet.jobs.runners.sandbox import sandbox_runner
from jobs.attempts import an_order, outcome
from jobs.layouts import (
    ELSEWHERE,
    HERE,
    INDEX,
    a_layer,
    a_layout,
    a_manifest,
    add_document,
    an_archive,
    entry,
    files_of,
    folder,
    refusal,
    symlink,
    write_index,
)
from jobs.overseen import a_job, an_overseer, set_jobs
from jobs.running import BODY
from jobs.scripted_runner import ScriptedRunner

needs_bubblewrap = pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="bubblewrap is not installed."
)


@pytest.fixture
def get(tmp_path: Path) -> Callable[[Path], images.Image]:
    return lambda target: images.get_image(str(target), cache=tmp_path / "cache")


def test_a_damaged_layer_is_refused(tmp_path: Path, get: Callable[[Path], images.Image]) -> None:
    layer = a_layer(entry("a", "one"))
    layout = a_layout(tmp_path / "layout", layer)
    digest = hashlib.sha256(layer).hexdigest()
    (layout / "blobs" / "sha256" / digest).write_bytes(a_layer(entry("a", "two")))
    sentence = f"The image is damaged: sha256:{digest} has other content."
    assert refusal(get, layout) == sentence


def test_a_damaged_manifest_is_refused(tmp_path: Path, get: Callable[[Path], images.Image]) -> None:
    layout = tmp_path / "layout"
    manifest = a_manifest(layout)
    write_index(layout, manifest)
    (layout / "blobs" / "sha256" / manifest["digest"].removeprefix("sha256:")).write_text("{}")
    sentence = f"The image is damaged: {manifest['digest']} has other content."
    assert refusal(get, layout) == sentence


@pytest.mark.parametrize(
    "index",
    [
        pytest.param([], id="a list"),
        pytest.param({}, id="without manifests"),
        pytest.param({"manifests": [1]}, id="a manifest that is none"),
        pytest.param({"manifests": [{}]}, id="without a digest"),
        pytest.param({"manifests": [{"digest": "sha256:../../../../etc"}]}, id="a way out"),
        pytest.param({"manifests": [{"digest": "sha512:" + "0" * 128}]}, id="another digest"),
    ],
)
def test_an_index_without_sense_is_refused(
    tmp_path: Path, get: Callable[[Path], images.Image], index: object
) -> None:
    layout = a_layout(tmp_path / "layout")
    (layout / "index.json").write_text(json.dumps(index))
    assert refusal(get, layout) == "The image does not keep to the OCI image specification."


def test_an_index_is_not_read_through_a_link(
    tmp_path: Path, get: Callable[[Path], images.Image]
) -> None:
    layout = a_layout(tmp_path / "layout")
    (layout / "index.json").rename(tmp_path / "index.json")
    (layout / "index.json").symlink_to(tmp_path / "index.json")
    assert refusal(get, layout).startswith("The image cannot be read: ")


def test_an_index_beyond_the_limit_is_refused(
    tmp_path: Path, get: Callable[[Path], images.Image]
) -> None:
    layout = a_layout(tmp_path / "layout")
    (layout / "index.json").write_text(" " * (4 * 2**20 + 1))
    assert refusal(get, layout) == "The image describes itself at too great a length."


def test_indexes_without_end_are_refused(
    tmp_path: Path, get: Callable[[Path], images.Image]
) -> None:
    layout = tmp_path / "layout"
    described = a_manifest(layout)
    for _ in range(5):
        described = add_document(layout, {"manifests": [described]}) | {"mediaType": INDEX}
    write_index(layout, described)
    assert refusal(get, layout) == "The image does not keep to the OCI image specification."


def test_of_several_the_one_for_this_machine_is_taken(
    tmp_path: Path, get: Callable[[Path], images.Image]
) -> None:
    layout = tmp_path / "layout"
    other = a_manifest(layout, a_layer(entry("other")), platform=ELSEWHERE) | {
        "platform": ELSEWHERE
    }
    attestation = a_manifest(layout) | {"platform": {"os": "unknown", "architecture": "unknown"}}
    mine = a_manifest(layout, a_layer(entry("mine"))) | {"platform": HERE | {"variant": "v8"}}
    nested = add_document(layout, {"manifests": [other, attestation, mine]})
    root = get(write_index(layout, nested | {"mediaType": INDEX})).root
    assert files_of(root) == {"mine": ""}
    assert root.name == str(mine["digest"]).replace(":", "-")


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        pytest.param(
            [], "The image file has no image for {}; it needs exactly one.", id="none for it"
        ),
        pytest.param(
            ["a", "b"],
            "The image file has several images for {}; it needs exactly one.",
            id="two for it",
        ),
    ],
)
def test_exactly_one_must_be_for_this_machine(
    tmp_path: Path, get: Callable[[Path], images.Image], names: list[str], sentence: str
) -> None:
    layout = tmp_path / "layout"
    manifests = [a_manifest(layout, a_layer(entry(name))) for name in names]
    other = a_manifest(layout, platform=ELSEWHERE) | {"platform": ELSEWHERE}
    write_index(layout, other, *manifests)
    assert refusal(get, layout) == sentence.format(f"linux/{oci.machine()}")


def test_an_image_for_another_machine_is_refused(
    tmp_path: Path, get: Callable[[Path], images.Image]
) -> None:
    layout = tmp_path / "layout"
    write_index(layout, a_manifest(layout, platform=ELSEWHERE))
    sentence = f"The image is for linux/mips, and this machine is linux/{oci.machine()}."
    assert refusal(get, layout) == sentence


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_an_archive_and_its_folder_are_one_image(
    tmp_path: Path, get: Callable[[Path], images.Image], mode: str
) -> None:
    layout = a_layout(tmp_path / "layout", a_layer(entry("a", "x")), Cmd=["a"])
    archive = an_archive(layout, mode=mode)
    image = get(archive)
    assert files_of(image.root) == {"a": "x"}
    assert image.defaults == Defaults(command=("a",))
    assert get(archive) == image
    assert get(layout) == image
    folders = [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]
    assert {path.resolve() for path in folders} == {image.root}
    assert not [path for path in folders if path.name.endswith(".partial")]


def test_an_image_is_unpacked_once(tmp_path: Path, get: Callable[[Path], images.Image]) -> None:
    layer = a_layer(entry("a", "x"))
    layout = a_layout(tmp_path / "layout", layer)
    first = get(layout)
    (layout / "blobs" / "sha256" / hashlib.sha256(layer).hexdigest()).unlink()
    assert get(layout) == first


def test_an_image_says_how_it_is_run(tmp_path: Path, get: Callable[[Path], images.Image]) -> None:
    image = get(
        a_layout(
            tmp_path / "layout",
            Env=["A=1", "B=x=y", "C=", "D", "../E=1", "=F"],
            WorkingDir="/srv/app",
            Entrypoint=["/bin/sh", "-c"],
            Cmd=["echo"],
            User="root",
        )
    )
    assert image.defaults == Defaults(
        environment={"A": "1", "B": "x=y", "C": "", "D": ""},
        cwd="/srv/app",
        entrypoint=("/bin/sh", "-c"),
        command=("echo",),
    )
    assert files_of(image.root) == {"srv": "/", "srv/app": "/"}


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"Env": "A=1"}, id="variables that are no list"),
        pytest.param({"Cmd": ["a\0b"]}, id="a word that ends in the middle"),
        pytest.param({"Entrypoint": [1]}, id="a word that is a number"),
        pytest.param({"WorkingDir": "srv"}, id="a folder that depends"),
        pytest.param({"WorkingDir": "/a\0b"}, id="a folder that ends in the middle"),
        pytest.param({"WorkingDir": ["/"]}, id="a folder that is a list"),
    ],
)
def test_a_configuration_without_sense_is_refused(
    tmp_path: Path, get: Callable[[Path], images.Image], config: dict[str, object]
) -> None:
    layout = a_layout(tmp_path / "layout", **config)
    assert refusal(get, layout) == "The image does not keep to the OCI image specification."


@pytest.mark.parametrize(
    ("argv", "given", "said", "runs"),
    [
        pytest.param(
            ("a", "b"), "command", (("e",), ("c",)), ("a", "b"), id="the job's own command"
        ),
        pytest.param((), "arguments", (("e",), ("c",)), ("e", "c"), id="all is the image's"),
        pytest.param(
            ("a",), "arguments", (("e",), ("c",)), ("e", "a"), id="only the arguments are given"
        ),
        pytest.param((), "arguments", ((), ("c",)), ("c",), id="the image has no entrypoint"),
        pytest.param(("a",), "arguments", ((), ("c",)), ("a",), id="arguments alone"),
    ],
)
def test_the_command_is_the_jobs_or_the_images(
    tmp_path: Path,
    argv: tuple[str, ...],
    given: str,
    said: tuple[tuple[str, ...], tuple[str, ...]],
    runs: tuple[str, ...],
) -> None:
    order = an_order(tmp_path, *argv, after_entrypoint=given == "arguments")
    defaults = Defaults(entrypoint=said[0], command=said[1])
    assert images.argv_of(order, images.Image(root=tmp_path, defaults=defaults)) == runs


def test_without_any_command_there_is_nothing_to_run(tmp_path: Path) -> None:
    order = an_order(tmp_path, after_entrypoint=True)
    with pytest.raises(CannotRun, match=r"^The image does not say what to run: give the job a c"):
        images.argv_of(order, images.Image(root=tmp_path))


def links_of_this_machine() -> list[tuple[tarfile.TarInfo, bytes]]:
    """Enough of a root to run a shell, with this machine's /usr."""
    found = [Path("/", name) for name in ("bin", "lib", "lib64")]
    return [symlink(path.name, str(path.readlink())) for path in found if path.is_symlink()]


@needs_bubblewrap
@pytest.mark.parametrize(
    ("argv", "printed"),
    [
        pytest.param((), ["hello from /srv/app as mine, /home/job, of the job"], id="the image's"),
        pytest.param(("sh", "-c", "echo $A"), ["mine"], id="the job's"),
    ],
)
async def test_an_image_runs(tmp_path: Path, argv: tuple[str, ...], printed: list[str]) -> None:
    layout = a_layout(
        tmp_path / "layout",
        gzip.compress(a_layer(folder("usr"), *links_of_this_machine())),
        Env=["A=mine", "B=of the image", "HOME=/root"],
        WorkingDir="/srv/app",
        Entrypoint=["sh", "-c"],
        Cmd=["echo hello from $PWD as $A, $HOME, $B"],
    )
    runner = sandbox_runner(
        tmp_path,
        image_map=[ImageSource(pattern="*", target=str(an_archive(layout)))],
        network=False,
    )
    seen, lines = await outcome(
        runner,
        tmp_path,
        *argv,
        after_entrypoint=not argv,
        environment={"B": "of the job"},
        binds=(Bind(source=Path("/usr"), target="/usr", read_only=True),),
    )
    assert (seen.exit_code, lines) == (0, printed)


def a_docker_archive(
    place: Path, *of_layers: bytes, said: bytes | None = None, platform: dict[str, str] = HERE
) -> Path:
    """What `docker save` made before it wrote layouts; `said` are other digests."""
    place.mkdir()
    names = [f"{number}/layer.tar" for number in range(len(of_layers))]
    for name, layer in zip(names, of_layers, strict=True):
        (place / name).parent.mkdir()
        (place / name).write_bytes(layer)
    digests = [f"sha256:{hashlib.sha256(said or layer).hexdigest()}" for layer in of_layers]
    config = platform | {"config": {"Cmd": ["a"]}, "rootfs": {"diff_ids": digests}}
    (place / "config.json").write_text(json.dumps(config))
    manifest = [{"Config": "config.json", "RepoTags": ["a:1"], "Layers": names}]
    (place / "manifest.json").write_text(json.dumps(manifest))
    return an_archive(place)


def test_an_archive_of_docker_is_an_image(
    tmp_path: Path, get: Callable[[Path], images.Image]
) -> None:
    both = a_layer(entry("a"), entry("b", "1")), a_layer(entry(".wh.a"), entry("b", "2"))
    image = get(a_docker_archive(tmp_path / "saved", *both))
    assert files_of(image.root) == {"b": "2"}
    assert image.defaults == Defaults(command=("a",))


def test_a_damaged_archive_of_docker_is_refused(
    tmp_path: Path, get: Callable[[Path], images.Image]
) -> None:
    archive = a_docker_archive(tmp_path / "saved", a_layer(entry("a")), said=b"other")
    digest = hashlib.sha256(b"other").hexdigest()
    assert refusal(get, archive) == f"The image is damaged: sha256:{digest} has other content."


def test_an_archive_of_docker_for_another_machine_is_refused(
    tmp_path: Path, get: Callable[[Path], images.Image]
) -> None:
    archive = a_docker_archive(tmp_path / "saved", platform=ELSEWHERE)
    sentence = f"The image is for linux/mips, and this machine is linux/{oci.machine()}."
    assert refusal(get, archive) == sentence


@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        pytest.param([], "The image file has 0 images; it needs exactly one.", id="no image"),
        pytest.param([{}, {}], "The image file has 2 images; it needs exactly one.", id="two"),
        pytest.param(
            [{"Config": "../../outside"}],
            "The image has a file that lies outside of it: ../../outside.",
            id="a configuration outside",
        ),
        pytest.param(
            [{"Config": "config.json", "Layers": ["/etc/passwd"]}],
            "The image has a file that lies outside of it: /etc/passwd.",
            id="a layer outside",
        ),
        pytest.param({}, "The image does not keep to the OCI image specification.", id="no list"),
    ],
)
def test_an_archive_of_docker_without_sense_is_refused(
    tmp_path: Path, get: Callable[[Path], images.Image], manifest: object, sentence: str
) -> None:
    place = tmp_path / "saved"
    a_docker_archive(place, a_layer(entry("a")))
    (place / "manifest.json").write_text(json.dumps(manifest))
    assert refusal(get, an_archive(place)) == sentence


def test_a_root_with_a_file_of_that_name_stays_a_root(
    tmp_path: Path, get: Callable[[Path], images.Image]
) -> None:
    archive = tmp_path / "root.tar"
    archive.write_bytes(a_layer(folder("usr"), entry("manifest.json", "[]")))
    assert files_of(get(archive).root) == {"usr": "/", "manifest.json": "[]"}


async def test_a_job_without_a_command_leaves_it_to_the_image(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_jobs(database, cores=16)
    runner = ScriptedRunner()
    told = await a_job(database)
    monkeypatch.delitem(BODY, "command")
    untold = await a_job(database, arguments=["a"])
    await an_overseer(database, runner).look()
    orders = [runner.attempts[job_id, 1].order for job_id in (told, untold)]
    assert [(order.argv, order.after_entrypoint) for order in orders] == [
        (("true",), False),
        (("a",), True),
    ]
