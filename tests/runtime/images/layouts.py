"""OCI images for tests, made of a few lines."""

import hashlib
import json
import tarfile
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from hublet.runtime.errors import CannotRun
from hublet.runtime.images import oci, rootfs
from hublet.runtime.images.layer_stack import merge

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
HERE = {"os": "linux", "architecture": oci.machine()}
ELSEWHERE = {"os": "linux", "architecture": "mips"}


def entry(
    name: str, content: str = "", *, kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.size = kind, link, len(content)
    found.mode, found.mtime = 0o600, 1_000_000_000
    return found, content.encode()


def folder(name: str) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, kind=tarfile.DIRTYPE)


def symlink(name: str, link: str) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, kind=tarfile.SYMTYPE, link=link)


def a_layer(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    written = BytesIO()
    with tarfile.open(fileobj=written, mode="w") as file:
        for member, content in entries:
            file.addfile(member, BytesIO(content))
    return written.getvalue()


def add_blob(layout: Path, content: bytes) -> dict[str, Any]:
    """Put content into a layout; return what describes it."""
    digest = hashlib.sha256(content).hexdigest()
    place = layout / "blobs" / "sha256" / digest
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return {"digest": f"sha256:{digest}", "size": len(content)}


def add_document(layout: Path, document: object) -> dict[str, Any]:
    return add_blob(layout, json.dumps(document).encode())


def a_manifest(
    layout: Path, *of_layers: bytes, platform: dict[str, str] = HERE, **config: Any
) -> dict[str, Any]:
    said = add_document(layout, platform | {"config": config, "rootfs": {"type": "layers"}})
    described = [add_blob(layout, layer) for layer in of_layers]
    manifest = {"schemaVersion": 2, "config": said, "layers": described}
    return add_document(layout, manifest) | {"mediaType": MANIFEST}


def write_index(layout: Path, *manifests: object) -> Path:
    layout.mkdir(exist_ok=True)
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": manifests}))
    return layout


def a_layout(layout: Path, *of_layers: bytes, **config: Any) -> Path:
    return write_index(layout, a_manifest(layout, *of_layers, **config))


def an_archive(layout: Path, *, mode: str = "w") -> Path:
    archive = layout.with_suffix(".tar")
    with tarfile.open(archive, mode) as file:  # type: ignore[call-overload]
        for path in sorted(layout.iterdir()):
            file.add(path, path.name)
    return archive


def files_of(image: rootfs.Image | Path) -> dict[str, str]:
    """What an image holds: the content of files, where links lead to, and folders.

    What the hub adds to its layers is left out.
    """
    if isinstance(image, Path):
        return _files_in(image)
    if image.folder is None or image.folder.suffix != rootfs.LAYERED:
        return _files_in(image.root)
    with tempfile.TemporaryDirectory() as name:
        merge(rootfs.load_layers(image.folder), into=Path(name))
        return _files_in(Path(name))


def _files_in(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): (
            f"-> {path.readlink()}"
            if path.is_symlink()
            else path.read_text()
            if path.is_file()
            else "/"
        )
        for path in root.rglob("*")
    }


def refusal(get: Callable[[Path], rootfs.Image], target: Path) -> str:
    with pytest.raises(CannotRun) as refused:
        get(target)
    return str(refused.value)


def links_of_this_machine() -> list[tuple[tarfile.TarInfo, bytes]]:
    """Enough of a root to run a shell, with this machine's /usr."""
    found = [Path("/", name) for name in ("bin", "lib", "lib64")]
    return [symlink(path.name, str(path.readlink())) for path in found if path.is_symlink()]
