"""The samples for reverse proxies and that of compose, in front of a hub: TLS, large bodies, streams."""

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from benchmarks.processes import free_port
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from acceptance.test_ports import SERVER
from faults.content import commit, content_of, create_repo, first_person
from oci_images import needed
from patience import SOON_SECONDS
from processes import Place, Server, serving, wait_until

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
HOST = "hub.example.com"
JOBS = "jobs.example.com"
LARGE = bytes(range(256)) * 60_000


def write_certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(each) for each in (HOST, f"*.{JOBS}")]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    paths = folder / "proxy.pem", folder / "proxy.key"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


def nginx_command(folder: Path, upstream: str, port: int) -> list[str]:
    pem, key = write_certificate(folder)
    names = {
        "127.0.0.1:8000": upstream,
        "/etc/ssl/hub.example.com.pem": str(pem),
        "/etc/ssl/hub.example.com.key": str(key),
        "listen 443 ssl http2;": f"listen 127.0.0.1:{port} ssl http2;",
        "listen 80;": f"listen 127.0.0.1:{free_port()};",
    }
    return nginx_with(folder, DEPLOY / "nginx" / "hublet.conf", names)


def compose_command(folder: Path, upstream: str, port: int) -> list[str]:
    names = {
        "node-1:8000": upstream,
        "node-2:8000": upstream,
        "listen 80;": f"listen 127.0.0.1:{port};",
    }
    return nginx_with(folder, DEPLOY / "compose" / "nginx.conf", names)


def with_names_of_here(sample: Path, names: dict[str, str]) -> str:
    text = sample.read_text()
    for old, new in names.items():
        assert old in text
        text = text.replace(old, new)
    return text


def nginx_with(folder: Path, sample: Path, names: dict[str, str]) -> list[str]:
    """Write the sample with the names of here, and return what starts nginx with it."""
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;\n"
        "events { worker_connections 256; }\n"
        f"http {{ access_log off; client_body_temp_path {folder}/body; "
        f"proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi; "
        f"uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n"
        f"{with_names_of_here(sample, names)}\n}}\n"
    )
    command = ["nginx", "-c", str(folder / "nginx.conf"), "-p", str(folder)]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    return command


def caddy_command(folder: Path, upstream: str, port: int) -> list[str]:
    pem, key = write_certificate(folder)
    names = {
        "127.0.0.1:8000": upstream,
        "\nhub.example.com {\n": f"\nhttps://hub.example.com:{port} {{\n\ttls {pem} {key}\n",
        "*.jobs.example.com {": f"https://*.jobs.example.com:{port} {{",
        "/etc/ssl/jobs.example.com.pem /etc/ssl/jobs.example.com.key": f"{pem} {key}",
    }
    sample = with_names_of_here(DEPLOY / "caddy" / "Caddyfile", names)
    config = folder / "Caddyfile"
    config.write_text("{\n\tadmin off\n\tauto_https off\n\tgrace_period 1s\n}\n" + sample)
    return ["caddy", "run", "--config", str(config), "--adapter", "caddyfile"]


COMMANDS = {"nginx": nginx_command, "caddy": caddy_command, "compose": compose_command}
# That of compose is without TLS.
SCHEMES = {"compose": "http"}


@contextmanager
def proxied(kind: str, folder: Path, server: Server, hub: int) -> Iterator[httpx2.Client]:
    """Yield a client that reaches the hub, which listens on this port, through the proxy only."""
    port = free_port()
    command = COMMANDS[kind](folder, f"127.0.0.1:{hub}", port)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        wait_until(lambda: is_open(port), seconds=SOON_SECONDS)
        with httpx2.Client(
            base_url=f"{SCHEMES.get(kind, 'https')}://127.0.0.1:{port}",
            headers={"Authorization": f"Bearer {server.token}", "Host": HOST},
            verify=False,
            trust_env=False,
            timeout=SOON_SECONDS,
        ) as client:
            client.event_hooks["request"] = [name_host]
            yield client
    finally:
        process.terminate()
        process.wait(SOON_SECONDS)


def name_host(request: httpx2.Request) -> None:
    # The name in the handshake: Caddy answers to those it has a certificate for.
    request.extensions["sni_hostname"] = request.headers["Host"]


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("kind", COMMANDS)
def test_uploads_downloads_and_streams_pass_through(kind: str, tmp_path: Path) -> None:
    needed("nginx" if kind == "compose" else kind)
    place = Place(folder=tmp_path)
    variables = {
        "HUBLET_BASE_URL": f"https://{HOST}",
        "HUBLET_SERVER_TRUSTED_PROXIES": "127.0.0.0/8",
        "HUBLET_JOBS_DOMAIN": JOBS,
        "HUBLET_JOBS_RUNNER": "process",
    }
    hub = free_port()
    with (
        serving(place, "--port", str(hub), variables=variables) as server,
        proxied(kind, tmp_path, server, hub) as client,
    ):
        repo = create_repo(client, "engine")
        commit(client, repo, "main", {"weights.bin": LARGE})
        assert content_of(client, repo, "main", "weights.bin") == LARGE
        part = client.get(f"/{repo.name}/resolve/main/weights.bin", headers={"Range": "bytes=5-9"})
        assert (part.status_code, part.content) == (206, LARGE[5:10])
        assert client.get("/metrics").status_code == 404
        assert client.get("/readyz").json() == {"status": "ok"}
        assert first_person(server).name in client.get("/api/whoami-v2").text
        _check_stream(client, repo.name)
        _check_port_of_a_job(client, kind)


def _check_stream(client: httpx2.Client, name: str) -> None:
    """An event arrives while its stream stays open."""
    body = {"watched": [{"type": "user", "name": "admin"}], "domains": ["repo"]}
    hook = client.post(
        "/api/settings/webhooks", json=body | {"url": "https://example.com/hook"}
    ).json()["webhook"]
    path = f"/api/settings/webhooks/{hook['id']}/deliveries/stream"
    with client.stream("GET", path) as stream:
        assert stream.status_code == 200, stream.read()
        lines = stream.iter_lines()
        next(lines)
        change = threading.Thread(
            target=client.put,
            args=(f"/api/models/{name}/settings",),
            kwargs={"json": {"gated": "auto"}},
        )
        change.start()
        found = next(line for line in lines if line.startswith("data:") and len(line) > 10)
        assert json.loads(found.removeprefix("data:"))
        change.join()


def _check_port_of_a_job(client: httpx2.Client, kind: str) -> None:
    """A request and a websocket reach a job at a host of its own."""
    port = free_port()
    job = {
        "dockerImage": "ubuntu",
        "flavor": "cpu-basic",
        "command": ["/usr/bin/python3", "-c", SERVER, str(port)],
        "expose": {"ports": [port]},
    }
    path = f"/api/jobs/admin/{client.post('/api/jobs/admin', json=job).json()['id']}"
    host = f"{path.rpartition('/')[2]}--{port}.{JOBS}"
    assert client.get(path).json()["status"]["exposeUrls"] == [f"https://{host}"]

    wait_until(
        lambda: client.get("/", headers={"Host": host}).status_code == 200, seconds=SOON_SECONDS
    )
    assert client.get("/", headers={"Host": host}).text == "hello, None"
    # That of compose is for no hosts of jobs.
    if kind != "compose":
        assert client.get("/metrics", headers={"Host": host}).text == "hello, None"
    assert client.get("/", headers={"Host": host, "Authorization": ""}).status_code == 401
    _check_websocket(client, host)

    # It would outlive the hub, as jobs do.
    client.post(f"{path}/cancel")
    wait_until(
        lambda: client.get(path).json()["status"]["stage"] == "CANCELED", seconds=SOON_SECONDS
    )


def _check_websocket(client: httpx2.Client, host: str) -> None:
    """The upgrade is the job's, and so are the bytes after it: a frame comes back as it was sent."""
    key = "dGhlIHNhbXBsZSBub25jZQ=="
    headers = {"Host": host, "Connection": "Upgrade", "Upgrade": "websocket"}
    headers |= {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}
    with client.stream("GET", "/", headers=headers) as response:
        assert response.status_code == 101
        # From RFC 6455: what belongs to this key.
        assert response.headers["Sec-WebSocket-Accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        stream = response.extensions["network_stream"]
        # Text of four bytes, the only fragment; masked by nothing on the way there.
        stream.write(b"\x81\x84\0\0\0\0said")
        heard = b""
        while len(heard) < 6 and (part := stream.read(100, timeout=SOON_SECONDS)):
            heard += part
        assert heard == b"\x81\x04said"
