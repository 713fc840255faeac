"""Hostile titles and names in mails: what people wrote is shown, and never read as a header."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hublet.core.mail import headers
from people import Headers
from security import mail_header_corpus

CORPUS = mail_header_corpus.corpus()
PROGRAM = Path(mail_header_corpus.__file__)
# Pythons after the one that runs the tests, newest first.
LATER_PYTHONS = [f"python3.{minor}" for minor in range(20, sys.version_info.minor, -1)]

# A Python of WebAssembly from npm (https://pyodide.org), where Node is at hand and no later Python.
PYODIDE = "pyodide@314.0.7"
PYODIDE_PROGRAM = """
import { loadPyodide } from "pyodide";
import { readFileSync } from "node:fs";
const python = await loadPyodide();
for (const each of ["headers", "corpus"])
  python.FS.writeFile(`/${each}.py`, readFileSync(process.argv[each === "headers" ? 2 : 3]));
python.runPython("import sys, runpy; sys.argv = ['', '/headers.py']");
python.runPython("runpy.run_path('/corpus.py', run_name='__main__')");
"""

# The program is the second argument, as for Node.
RUN_SECOND = "import runpy, sys; runpy.run_path(sys.argv[2], run_name='__main__')"


@pytest.mark.parametrize("text", CORPUS, ids=map(json.dumps, CORPUS))
def test_a_hostile_text_is_only_shown(text: str) -> None:
    assert mail_header_corpus.problems(headers, text) == []


def test_the_corpus_is_large() -> None:
    assert len(CORPUS) >= 200


@pytest.mark.full
def test_the_newest_python_reads_the_same(tmp_path: Path) -> None:
    command = _later_python(tmp_path)
    if command is None:
        pytest.skip("No Python after this one is here, and none could be had from npm.")

    done = subprocess.run(
        [*command, headers.__file__, PROGRAM], check=False, capture_output=True, text=True
    )

    assert (done.stdout.strip(), done.stderr) == (f"{len(CORPUS)} texts are harmless", "")


def _later_python(folder: Path) -> list[str | Path] | None:
    for name in LATER_PYTHONS:
        python = shutil.which(name)
        # A name that only refers to a Python that is not installed does not run.
        if (
            python
            and not subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode
        ):
            return [python, "-c", RUN_SECOND]
    if not shutil.which("npm"):
        return None
    install = [
        "npm",
        "install",
        "--silent",
        "--no-audit",
        "--no-fund",
        "--prefix",
        str(folder),
        PYODIDE,
    ]
    if subprocess.run(install, check=False, capture_output=True).returncode:
        return None
    program = folder / "corpus.mjs"
    program.write_text(PYODIDE_PROGRAM)
    return ["node", program]


REFUSAL = "must be a single line without control characters."
CONTROL_CHARACTERS = "\n\r\t\x07\x1b\x7f\x85\x9b\u2028\u2029"
PAPER = {"arxivId": "2401.00001", "summary": "y", "authors": ["Ada"]}


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        pytest.param("POST", "/api/models/ada/engine/discussions", {}, "title", id="discussion"),
        pytest.param("POST", "/api/posts", {"content": "y"}, "title", id="post"),
        pytest.param("POST", "/api/blog", {"content": "y"}, "title", id="blog"),
        pytest.param("POST", "/api/papers/index", PAPER, "title", id="paper"),
        pytest.param("POST", "/api/organizations", {"name": "engines"}, "fullname", id="organization"),
        pytest.param("PATCH", "/api/settings/profile", {}, "fullname", id="user"),
    ],
)  # fmt: skip
async def test_control_characters_are_refused_in_titles_and_full_names(
    client: httpx2.AsyncClient, ada: Headers, method: str, path: str, body: Any, field: str
) -> None:
    await client.post("/api/repos/create", headers=ada, json={"name": "engine"})
    for control in CONTROL_CHARACTERS:
        hostile = body | {field: f"Good{control}Bcc: eve@example.com"}

        response = await client.request(method, path, headers=ada, json=hostile)

        assert (response.status_code, response.json()) == (400, {"error": f"{field}: {REFUSAL}"})
