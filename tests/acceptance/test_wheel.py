"""The wheel, installed into an empty environment, holds all that a hub needs."""

import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import httpx2

import hublet
from processes import Place, clean_environment, serving

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "webhook_app"
# What is not code but must be inside too: migrations, templates, the texts of the description.
ANSWERS = {
    "/healthz": (200, "application/json"),
    "/readyz": (200, "application/json"),
    "/": (200, "text/html"),
    "/docs": (200, "text/html"),
    "/.well-known/openapi.json": (200, "application/json"),
    "/.well-known/openapi.md": (200, "text/markdown"),
}
# A path of the developer's must not bring in the source in place of what was installed.
NO_PATH = {"PYTHONPATH": ""}


def _run(*command: str | Path, folder: Path) -> str:
    ended = subprocess.run(
        command,
        cwd=folder,
        env=clean_environment(NO_PATH),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def _install(folder: Path) -> Path:
    """Build the wheel, install it where nothing else is, and return the folder of programs."""
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    _run(*build, folder=folder)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "environment", with_pip=False)
    programs = folder / "environment" / "bin"
    # Our own pip installs into the other environment, which saves installing one there.
    pip = (sys.executable, "-m", "pip", "--python", programs / "python")
    install = (*pip, "install", "--quiet", "-c", ROOT / "constraints.txt")
    _run(*install, f"{wheel}[testing]", *_needs_of_the_example(), folder=folder)
    return programs


def _needs_of_the_example() -> list[str]:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    needs: list[str] = project["dependencies"]
    return needs


def test_the_installed_wheel_serves_a_whole_hub_from_an_empty_folder(tmp_path: Path) -> None:
    programs = _install(tmp_path)
    told = _run(programs / "python", "-m", "hublet", "version", folder=tmp_path)
    assert told == f"hublet {hublet.__version__}\n"

    program = (str(programs / "hublet"),)
    place = Place(folder=tmp_path)
    with serving(place, program=program, variables=NO_PATH) as server, server.client() as client:
        answers = {path: _shape(client.get(path)) for path in ANSWERS}
        static = {client.get(path).status_code for path in _static_files(client.get("/docs").text)}

    assert answers == ANSWERS
    assert static == {200}
    # The plugin was installed with it, and needs nothing else to be of use.
    project = tmp_path / "project"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("__pycache__"))
    assert " passed" in _run(programs / "python", "-m", "pytest", folder=project)


def _shape(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.headers["content-type"].partition(";")[0]


def _static_files(page: str) -> list[str]:
    return re.findall(r'"(/static/[^"]+)"', page)
