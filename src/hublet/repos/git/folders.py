"""Where the bare repositories lie, and how one comes into being."""

import shutil
from pathlib import Path

import pygit2

# The same patterns that the public service gives a new repository.
_LARGE = (
    "*.7z *.arrow *.bin *.bz2 *.ckpt *.ftz *.gz *.h5 *.joblib *.lfs.* *.mlmodel *.model "
    "*.msgpack *.npy *.npz *.onnx *.ot *.parquet *.pb *.pickle *.pkl *.pt *.pth *.rar "
    "*.safetensors saved_model/**/* *.tar.* *.tar *.tflite *.tgz *.wasm *.xz *.zip *.zst "
    "*tfevents*"
)
LARGE_FILE_ATTRIBUTES = "filter=lfs diff=lfs merge=lfs -text"
GIT_ATTRIBUTES = "".join(f"{pattern} {LARGE_FILE_ATTRIBUTES}\n" for pattern in _LARGE.split())

MAIN = "refs/heads/main"


def folder_of(data_dir: Path, repo_id: str) -> Path:
    # Absolute, because git runs inside the folder. The last characters of an id differ most, so
    # folders fill evenly.
    return data_dir.absolute() / "repos" / repo_id[-2:] / f"{repo_id}.git"


def create(folder: Path) -> None:
    """Make an empty bare repository whose main branch is called main."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    pygit2.init_repository(folder, bare=True, initial_head="main")


def open_folder(folder: Path) -> pygit2.Repository:
    """Open without looking upwards, and without the configuration of whoever runs the hub."""
    return pygit2.Repository(str(folder), pygit2.enums.RepositoryOpenFlag.NO_SEARCH)


def remove(folder: Path) -> None:
    """Remove a repository; one that is gone already is fine."""
    shutil.rmtree(folder, ignore_errors=True)
