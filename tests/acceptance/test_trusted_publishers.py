"""The unmodified public client uploads without a secret: with an ID token, and as a job of GitHub does."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from acceptance.client_versions import ENVIRONMENTS, VERSIONS
from oauth.id_token_issuer import REQUEST_TOKEN, IdTokenIssuer, running_issuer
from processes import Place, Server, clean_environment, run_hublet, serving

UPLOAD = """
from huggingface_hub import HfApi
from pathlib import Path
api = HfApi()
api.upload_file(path_or_fileobj=b"1", path_in_repo="weights.txt", repo_id="ada/engine")
api.upload_folder(folder_path="model", repo_id="ada/engine")
print(sorted(api.list_repo_files("ada/engine")))
print(api.list_repo_commits("ada/engine")[0].authors)
"""


@pytest.fixture(scope="module")
def issuer() -> Iterator[IdTokenIssuer]:
    with running_issuer() as issuer:
        yield issuer


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, issuer: IdTokenIssuer) -> Iterator[Server]:
    place = Place(folder=tmp_path_factory.mktemp("hub"))
    variables = {
        "HUBLET_OAUTH_PUBLISHER_ISSUERS": issuer.url,
        "HUBLET_OUTGOING_ALLOW": "127.0.0.0/8",
    }
    with serving(place, variables=variables) as server:
        run_hublet("user", "add", "ada", *place.flags, folder=place.folder)
        token = run_hublet("token", "create", "ada", *place.flags, folder=place.folder)
        with server.client(token.stdout.split()[-1]) as ada:
            ada.post("/api/repos/create", json={"name": "engine", "private": True})
            added = ada.post(
                "/api/models/ada/engine/trusted-publishers",
                json={
                    "provider": "github",
                    "issuer": issuer.url,
                    "claims": {"repository": "acme/engine", "workflow": "release.yml"},
                },
            )
            assert added.status_code == 201, added.text
        yield server


def run_client(
    version: str, hub: Server, folder: Path, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    (folder / "model").mkdir()
    # Beyond what is stored as text, so that it goes as a large file too.
    (folder / "model" / "weights.safetensors").write_bytes(b"\x00" * 20_000)
    home = {"HF_HOME": str(folder / "home"), "HF_ENDPOINT": hub.address}
    environment = clean_environment(home | {"HF_OIDC_RESOURCE": "ada/engine"} | variables)
    program = ENVIRONMENTS / version / "bin" / arguments[0]
    return subprocess.run(
        [program, *arguments[1:]],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_the_client_uploads_with_an_id_token(
    hub: Server, issuer: IdTokenIssuer, tmp_path: Path, version: str
) -> None:
    id_token = issuer.token(aud=hub.address)

    # A token of somebody else in the environment does not count.
    ended = run_client(
        version, hub, tmp_path, "python", "-c", UPLOAD, HF_OIDC_ID_TOKEN=id_token, HF_TOKEN="hf_no"
    )

    assert ended.returncode == 0, ended.stderr
    assert "'weights.safetensors', 'weights.txt'" in ended.stdout
    assert "[OIDC] repo:acme/engine:ref:refs/heads/main" in ended.stdout


@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_of_github_uploads_without_any_token(
    hub: Server, issuer: IdTokenIssuer, tmp_path: Path, version: str
) -> None:
    ended = run_client(
        version, hub, tmp_path, "hf", "upload", "ada/engine", "model", f"from-{version}",
        GITHUB_ACTIONS="true",
        ACTIONS_ID_TOKEN_REQUEST_URL=f"{issuer.url}/mint?api-version=2.0",
        ACTIONS_ID_TOKEN_REQUEST_TOKEN=REQUEST_TOKEN,
    )  # fmt: skip

    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_client_shows_why_an_exchange_was_refused(
    hub: Server, issuer: IdTokenIssuer, tmp_path: Path
) -> None:
    id_token = issuer.token(aud=hub.address, event_name="pull_request_target")

    ended = run_client(
        VERSIONS[-1], hub, tmp_path, "python", "-c", UPLOAD, HF_OIDC_ID_TOKEN=id_token
    )

    assert ended.returncode != 0
    assert "invalid_grant: The ID token is not accepted for this resource." in ended.stderr
    assert id_token not in ended.stderr
