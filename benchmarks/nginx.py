"""The web server that downloads are held against: nginx, with a configuration of our own."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.hubs import ServedHub
from benchmarks.processes import free_port, running, wait_until_it_answers

# One process, so that its processor time is that of the serving; every path is in our folder.
_CONFIGURATION = """
{user}
daemon off;
master_process off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    sendfile on;
    tcp_nopush on;
    server {{
        listen 127.0.0.1:{port};
        location = /ready {{ return 200; }}
        location = /file {{ alias {file}; }}
    }}
}}
"""


def find_nginx() -> str | None:
    """Return the program; administrators' programs are looked for as well."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


@contextmanager
def serving_with_nginx(
    program: str, folder: Path, file: Path, *, core: int | None
) -> Iterator[ServedHub]:
    """Serve one file at /file until the body ends."""
    folder.mkdir()
    port = free_port()
    # Started by root it would give its rights away, and could not read the file.
    user = "user root;" if os.geteuid() == 0 else ""
    configuration = folder / "nginx.conf"
    configuration.write_text(_CONFIGURATION.format(user=user, folder=folder, port=port, file=file))
    command = [
        program,
        "-p",
        str(folder),
        "-c",
        str(configuration),
        "-e",
        str(folder / "error.log"),
    ]
    with running(command, output=folder / "nginx.log", core=core) as child:
        wait_until_it_answers(child, port, "/ready")
        yield ServedHub(child=child, port=port)
