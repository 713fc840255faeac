"""What is known of a root is found out anew when the root has changed."""

from pathlib import Path

import pytest

from hublet.runtime.records import BindMount
from hublet.runtime.sandbox import bubblewrap
from hublet.runtime.sandbox.bubblewrap import SandboxView, options


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("usr", "var/lib", "var/secret"):
        (tmp_path / "root" / name).mkdir(parents=True)
    return tmp_path / "root"


def mounted_folders(root: Path, *, hidden: str = "var/secret") -> list[str]:
    """Return the entries of the root and of the folder in which something is hidden."""
    bind = BindMount(source=root / "usr", target="/data", read_only=True)
    view = SandboxView(
        root=root,
        root_source=root,
        hidden=(root / hidden,),
        binds=(bind,),
        hostname="job",
        network=False,
    )
    words = options(view)
    places = words[words.index("--hostname") + 2 : words.index("--proc")]
    return [word for word in places if word.startswith("/") and not word.startswith(str(root))]


def test_a_folder_that_comes_and_goes_is_shown_as_long_as_it_is_there(root: Path) -> None:
    before = mounted_folders(root)
    assert before == ["/usr", "/var", "/var/lib"]
    (root / "opt").mkdir()
    (root / "var" / "cache").mkdir()
    assert mounted_folders(root) == ["/opt", "/usr", "/var", "/var/cache", "/var/lib"]
    (root / "opt").rmdir()
    (root / "var" / "cache").rmdir()
    assert mounted_folders(root) == before


def test_a_folder_that_is_closed_is_not_shown_in_parts_any_more(root: Path) -> None:
    assert "/var" in mounted_folders(root)
    (root / "var").chmod(0o700)
    assert mounted_folders(root) == ["/usr"]


def test_what_changes_in_a_folder_that_each_job_has_for_itself_is_no_reason_to_look_again(
    root: Path,
) -> None:
    (root / "tmp" / "data").mkdir(parents=True)
    before = mounted_folders(root, hidden="tmp/data")
    looks = bubblewrap.root_entries.cache_info().misses
    (root / "tmp" / "other").mkdir()
    assert mounted_folders(root, hidden="tmp/data") == before
    assert bubblewrap.root_entries.cache_info().misses == looks
