"""Images for tests with real tools: made of busybox, without any network."""

import gzip
import hashlib
import io
import json
import os
import platform
import shutil
import sysconfig
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
APPLETS = ("sh", "cat", "echo", "ls", "sleep")


def architecture() -> str:
    """Return this machine's, by the name that images give it."""
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


def needed(program: str) -> str:
    """Return where a program is, which a wheel or this machine has; skip the test, and say why, where it is missing."""
    folders = sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)
    found = shutil.which(program, path=os.pathsep.join(folders))
    if found is None:
        pytest.skip(f"{program} is not installed.")
    return found


def busybox_layer() -> bytes:
    """Return a layer with a static busybox, under the names of a few commands."""
    files = {"bin/busybox": (0o755, Path(needed("busybox")).read_bytes())}
    return layer(files, links={f"bin/{name}": "busybox" for name in APPLETS})


def layer(files: Mapping[str, tuple[int, bytes]], links: Mapping[str, str] | None = None) -> bytes:
    """Return a tar archive with these files (mode and content) and symbolic links."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        for name, (mode, content) in files.items():
            member = tarfile.TarInfo(name)
            member.mode, member.size = mode, len(content)
            archive.addfile(member, io.BytesIO(content))
        for name, target in (links or {}).items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            archive.addfile(link)
    return written.getvalue()


@dataclass
class ImageLayout:
    """A folder in the form of an OCI image layout, which all tools read: `oci:FOLDER:TAG`."""

    folder: Path
    manifests: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / "blobs" / "sha256").mkdir(parents=True)
        (self.folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')

    def add_blob(self, content: bytes, media_type: str) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        (self.folder / "blobs" / "sha256" / digest).write_bytes(content)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    def add_json(self, document: object, media_type: str) -> dict[str, Any]:
        return self.add_blob(json.dumps(document).encode(), media_type)

    def add_image(
        self,
        layers: Sequence[bytes],
        *,
        tag: str | None = None,
        machine: str | None = None,
        **config: Any,
    ) -> dict[str, Any]:
        """Add an image of these tar archives; return its descriptor, with its platform."""
        on = {"os": "linux", "architecture": machine or architecture()}
        ids = [f"sha256:{hashlib.sha256(each).hexdigest()}" for each in layers]
        described = {
            **on, "config": config, "rootfs": {"type": "layers", "diff_ids": ids},
            "history": [{"created_by": f"COPY layer {number}"} for number in range(len(layers))],
        }  # fmt: skip
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self.add_json(described, CONFIG),
            "layers": [self.add_blob(gzip.compress(each, 1, mtime=0), LAYER) for each in layers],
        }
        descriptor = self.add_json(manifest, MANIFEST) | {"platform": on}
        if tag is not None:
            self.add_tag(tag, descriptor)
        return descriptor

    def add_index(self, images: Sequence[dict[str, Any]], *, tag: str) -> dict[str, Any]:
        """Add an index of images, one for each platform."""
        document = {"schemaVersion": 2, "mediaType": INDEX, "manifests": list(images)}
        descriptor = self.add_json(document, INDEX)
        self.add_tag(tag, descriptor)
        return descriptor

    def add_tag(self, tag: str, descriptor: Mapping[str, Any]) -> None:
        named = {**descriptor, "annotations": {"org.opencontainers.image.ref.name": tag}}
        self.manifests.append(named)
        index = {"schemaVersion": 2, "manifests": self.manifests}
        (self.folder / "index.json").write_text(json.dumps(index))


def busybox_image(folder: Path, tag: str = "1", text: str = "hello\n") -> ImageLayout:
    """Return a layout with one image, which prints a text of its second layer."""
    layout = ImageLayout(folder)
    second = layer({"greeting": (0o644, text.encode())})
    layout.add_image([busybox_layer(), second], tag=tag, Cmd=["cat", "/greeting"])
    return layout
