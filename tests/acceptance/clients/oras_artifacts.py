"""Runs inside the environment of oras: one client pushes an artifact, pulls it, and attaches another to it.

Arguments: the host, the artifact, the token. It prints what it found as JSON.
"""

import json
import sys
from pathlib import Path

from oras.client import OrasClient
from oras.oci import Subject

host, target, token = sys.argv[1:]
client = OrasClient(hostname=host, insecure=True, auth_backend="token")
client.login(
    hostname=host, username="ada", password=token, config_path=str(Path("auth.json").absolute())
)
client.auth.set_basic_auth("ada", token)

pushed = client.push(target=target, files=["chart.txt"], quiet=True)
digest = pushed.headers["Docker-Content-Digest"]
pulled = client.pull(target=target, outdir="pulled")

Path("config.json").write_text("{}")
subject = Subject(
    mediaType=pushed.request.headers["Content-Type"],
    digest=digest,
    size=len(pushed.request.body),
)
attached = client.push(
    target=target.rpartition(":")[0] + ":sbom",
    files=["sbom.json"],
    manifest_config="config.json:application/vnd.example.sbom",
    subject=subject,
    do_chunked=True,
    quiet=True,
)
print(  # noqa: T201 - the test reads it
    json.dumps(
        {
            "digest": digest,
            "pulled": Path(pulled[0]).read_text(),
            "subject": attached.headers.get("OCI-Subject"),
            "tags": client.get_tags(target),
        }
    )
)
