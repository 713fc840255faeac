"""An object storage of the tests' own: SeaweedFS, one server for each process of tests."""

import json
import subprocess
import sysconfig
import time
from pathlib import Path

from benchmarks.processes import free_port

ACCESS_KEY = "hublet"
SECRET_KEY = "of-the-tests-only"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
BUCKET = "hublet"
_PATIENCE_SECONDS = 60


class ObjectStorage:
    """A running SeaweedFS, which a test may stop and start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.endpoint = f"http://127.0.0.1:{self._port}"
        identity = {
            "name": "tests",
            "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))

    def url(self, prefix: str) -> str:
        """Return what `storage.url` says for a hub whose objects have this prefix."""
        return f"s3://{BUCKET}/{prefix}?endpoint={self.endpoint}&region=us-east-1"

    def start(self) -> None:
        (self._folder / "data").mkdir(exist_ok=True)
        ports = [
            f"-{role}.port{protocol}={free_port()}"
            for role in ("master", "volume", "filer")
            for protocol in ("", ".grpc")
        ]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(_program(), "server", f"-dir={self._folder / 'data'}"),
                    *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", *ports),
                    *("-master.volumeSizeLimitMB=64", "-volume.max=0"),
                    *(
                        "-s3",
                        "-s3.autoCreateBucket",
                        f"-s3.port={self._port}",
                        "-master.telemetry=false",
                    ),
                    # These two have ports that only one server on a machine can have.
                    *("-s3.port.iceberg=0", "-s3.port.lance=0"),
                    *(f"-s3.port.grpc={free_port()}", f"-s3.config={self._folder / 's3.json'}"),
                ],
                cwd=self._folder,
                stdout=log,
                stderr=log,
            )
        self._wait()

    def _wait(self) -> None:
        """Wait until an object can be put, which makes the bucket."""
        from obstore import put  # noqa: PLC0415 - only who has the extra gets here
        from obstore.exceptions import BaseError  # noqa: PLC0415 - as above
        from obstore.store import S3Store  # noqa: PLC0415 - as above

        bucket = S3Store(
            BUCKET,
            endpoint=self.endpoint,
            region="us-east-1",
            access_key_id=ACCESS_KEY,
            secret_access_key=SECRET_KEY,
            client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                put(bucket, "ready", b"yes")
            except BaseError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _program() -> str:
    return str(Path(sysconfig.get_path("scripts"), "weed"))
