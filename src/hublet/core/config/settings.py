"""Settings, one group per concern, each with its default and the sentence that documents it."""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import field
from pathlib import Path

from hublet.core.config.kinds import (
    BASE_URL,
    BEARER,
    COLLECTOR,
    COUNT,
    DATABASE,
    FLAG,
    FOLDER,
    FORMATS,
    ISSUERS,
    LEVELS,
    NETWORKS,
    POSTGRESQL,
    PREFIX,
    PROCESSES,
    RING,
    ROLES,
    SENDER,
    SERVER_NAME,
    SIGN_UP,
    SMTP,
    STORAGE,
    Network,
    number,
    setting,
)
from hublet.core.config.workload_settings import JobSettings, SqlSettings
from hublet.core.dataclasses import dataclass

# Links lead to the name by which the request called a local hub, so that a session goes on there.
called_address: ContextVar[str | None] = ContextVar("called_address", default=None)

# Browsers offer passkeys to a name, never to a number: a hub that listens here is called localhost.
_LOCAL_HOSTS = frozenset({"127.0.0.1", "::1", "localhost", "0.0.0.0", "::"})  # noqa: S104 - names


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    host: str = setting("127.0.0.1", SERVER_NAME, "The address to listen on.")
    port: int = setting(8000, number(0, 65535, int), "The port to listen on; 0: any free one.")
    base_url: str | None = setting(
        None, BASE_URL, "What every link in an answer begins with.", unset="http://host:port"
    )
    node_name: str | None = setting(
        None,
        SERVER_NAME,
        "The name of this machine among those of one hub; it must not change while jobs run.",
        unset="the name of the host",
    )
    node_url: str | None = setting(
        None,
        BASE_URL,
        "Where the other machines of this hub reach this one, for ports and shells of its jobs.",
        unset="the address it listens on; its name if that is any",
    )
    trusted_proxies: tuple[Network, ...] = setting(
        (), NETWORKS, "Reverse proxies whose X-Forwarded-For is believed."
    )
    test_mode: bool = setting(
        False, FLAG, "Loopback targets allowed, limits quiet, clock movable: for tests only."
    )
    header_seconds: float = setting(
        20.0, number(0.1, 3600), "How long the head of a request may take to arrive."
    )
    body_bytes_per_second: int = setting(
        500, COUNT, "The least rate of a request body; what is slower is closed."
    )
    stall_seconds: float = setting(
        60.0, number(0.1, 86400), "How long a body may stall before its least rate counts."
    )
    keep_alive_seconds: float = setting(
        75.0, number(0.1, 3600), "How long a connection may be idle after a response."
    )
    connections_per_address: int = setting(
        500, COUNT, "Connections of an address; trusted_proxies have no limit; quiet in test mode."
    )
    stop_grace_seconds: float = setting(
        10.0, number(0, 3600), "How long a stop waits for what is running."
    )
    drain_seconds: float = setting(
        0.0, number(0, 3600), "How long a stop goes on serving while /readyz already says 503."
    )
    role: str = setting(
        "all",
        ROLES,
        "What hublet serve runs: the API, the worker behind it (worker), or both (all).",
    )
    processes: int = setting(
        1,
        PROCESSES,
        "Processes of the API behind one port, on PostgreSQL; auto: one for each core.",
    )
    metrics_token: str | None = setting(
        None, BEARER, "When set, /metrics needs it as a bearer token.", secret=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSettings:
    data_dir: Path = setting(
        Path("hublet-data"), FOLDER, "The data folder; a relative path starts where the hub does."
    )
    url: str | None = setting(
        None, DATABASE, "The database.", unset="the file hub.db in the data folder", secret=True
    )
    listen_url: str | None = setting(
        None,
        POSTGRESQL,
        "Where notices between processes go: past PgBouncer, straight to PostgreSQL.",
        unset="the same as database.url",
        secret=True,
    )
    pgbouncer: bool = setting(
        False,
        FLAG,
        "database.url leads to PgBouncer in transaction mode; then database.listen_url is needed.",
    )
    replica_url: str | None = setting(
        None,
        POSTGRESQL,
        "A replica that answers public lists and metadata to callers without a token.",
        secret=True,
    )
    replica_lag_seconds: float = setting(
        5.0, number(0.1, 3600), "How late the replica may be; if it is later, the primary answers."
    )
    pool_size: int = setting(10, COUNT, "Connections that a process keeps to PostgreSQL.")
    busy_timeout_seconds: float = setting(
        5.0, number(0, 600), "How long a request waits for a busy or absent database before a 503."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySettings:
    ring: str | None = setting(
        None,
        RING,
        "The keys of digests and seals: the first is current, the others serve what is older.",
        unset="the file secret.keys in the data folder",
        secret=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSettings:
    prefix: str = setting(
        "hf_", PREFIX, "What new tokens begin with; the JavaScript client takes only hf_."
    )
    cache_seconds: float = setting(
        0.5, number(0, 1), "How long a checked token is believed without looking again."
    )
    cache_size: int = setting(10000, COUNT, "Checked tokens that a process remembers.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSettings:
    sign_up: str = setting(
        "closed",
        SIGN_UP,
        "Who may create an account: nobody but whom administrators of the hub invite, also whom "
        "those of an organization invite, or everybody.",
    )
    sign_ups_per_hour: int = setting(
        10, COUNT, "Accounts that may be created from one address in an hour; quiet in test mode."
    )
    resets_per_hour: int = setting(
        10, COUNT, "Links to a new password that one address may ask for in an hour."
    )
    session_days: int = setting(
        30, number(1, 400, int), "How long a browser stays signed in, at most."
    )
    idle_days: int = setting(
        14, number(1, 400, int), "How long a browser that shows no page stays signed in."
    )
    account_attempts: int = setting(
        10,
        COUNT,
        "Wrong passwords for one account, by name or address, in a window; quiet in test mode.",
    )
    address_attempts: int = setting(
        100, COUNT, "Failed log-ins from one address in a window; quiet in test mode."
    )
    window_seconds: int = setting(900, COUNT, "The length of that window.")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    batch_size: int = setting(50, COUNT, "Tasks claimed at a time.")
    lease_seconds: float = setting(
        30.0, number(1, 3600), "How long a task stays with a worker that gives no sign of life."
    )
    machine_lease_seconds: float = setting(
        180.0,
        number(1, 86400),
        "How long a machine may give no sign of life before its jobs count as lost.",
    )
    max_attempts: int = setting(12, COUNT, "Attempts before a task is given up.")
    poll_seconds: float = setting(
        1.0, number(0.01, 60), "How often to look for work that nothing announced."
    )
    concurrency: int = setting(8, COUNT, "Slow tasks that run at the same time.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    body_bytes: int = setting(1_048_576, COUNT, "The largest request body, in bytes.")
    file_bytes: int = setting(
        53_687_091_200, number(1, 10**15, int), "The largest file of a repository, in bytes."
    )
    owner_bytes: int | None = setting(
        None,
        number(1, 10**18, int),
        "What the repositories of a user or an organization may hold together, in bytes.",
    )
    anonymous_requests: int = setting(
        3000, COUNT, "Requests of an address without a token in a window; quiet in test mode."
    )
    authenticated_requests: int = setting(
        30000, COUNT, "Requests of a user in a window; quiet in test mode."
    )
    window_seconds: int = setting(300, COUNT, "The length of that window.")
    revoke_requests_per_hour: int = setting(
        60, COUNT, "Calls of an address that revoke leaked tokens; quiet in test mode."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    url: str | None = setting(
        None,
        STORAGE,
        "Where content lies that every node of the hub can reach; s3:// needs hublet[s3].",
        unset="the data folder",
    )
    previous_url: str | None = setting(
        None, STORAGE, "A second store, which is read while content moves between two."
    )
    redirect: bool = setting(
        True, FLAG, "Large downloads are redirected to the object storage, where it has addresses."
    )
    direct_uploads: bool = setting(
        True,
        FLAG,
        "Git LFS clients send large files to the object storage itself; storage.redirect too must be on.",
    )
    cache_bytes: int = setting(
        50_000_000_000,
        number(0, 10**18, int),
        "What a node keeps of the git repositories of a shared store, in bytes.",
    )
    scrub_bytes: int = setting(
        100_000_000_000,
        number(0, 10**18, int),
        "What is read again each day to find damage, in bytes; 0: nothing.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSettings:
    smtp_url: str | None = setting(
        None,
        SMTP,
        "The server that sends mails.",
        unset="files in mail/ in the data folder",
        secret=True,
    )
    sender: str = setting("Hublet <hublet@localhost>", SENDER, "Whom mails come from.")
    delay_seconds: float = setting(
        60.0, number(0, 86400), "How long a mail about a thread waits for more of it."
    )
    digest_hour: int = setting(
        8, number(0, 23, int), "The hour in UTC at which the digest of papers is sent."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingSettings:
    allow: tuple[Network, ...] = setting(
        (), NETWORKS, "Private networks that webhooks, client documents, logos, issuers may reach."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    per_owner: int = setting(100, COUNT, "Webhooks that a user or an organization may have.")
    daily_triggers: int | None = setting(
        None,
        COUNT,
        "Deliveries of a webhook in 24 hours; what is over it is kept as throttled.",
        unset="no limit",
    )
    deadline_seconds: float = setting(
        15.0, number(1, 60), "How long one attempt may take, from the first byte to the last."
    )
    concurrency: int = setting(256, COUNT, "Attempts that a worker makes at the same time.")
    retention_days: int = setting(30, COUNT, "How long deliveries and attempts are kept.")


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthSettings:
    registration: bool = setting(True, FLAG, "Apps may register by themselves, at /oauth/register.")
    publisher_issuers: tuple[str, ...] = setting(
        ("https://token.actions.githubusercontent.com", "https://gitlab.com"), ISSUERS,
        "Whose ID tokens trusted publishers may exchange; empty: nobody's.",
    )  # fmt: skip
    client_documents: bool = setting(
        True, FLAG, "Apps may be known by a document that the hub fetches; off without internet."
    )
    bind_tokens: bool = setting(
        False, FLAG, "A token that an app asked for one resource, such as /mcp, works only there."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSettings:
    remote_images: bool = setting(
        False, FLAG, "Pictures of other sites in READMEs load, and tell those sites who reads."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TracingSettings:
    url: str | None = setting(
        None, COLLECTOR, "Where traces are sent by OTLP; needs hublet[otel].", unset="no traces"
    )
    ratio: float = setting(1.0, number(0, 1), "Which part of all traces is sent.")
    propagate: bool = setting(
        False, FLAG, "Calls to webhooks and other strangers name the trace, in traceparent."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    level: str = setting("info", LEVELS, "The least level that is written.")
    format: str = setting(
        "auto", FORMATS, "Readable or JSON lines; auto is readable on a terminal only."
    )
    access: bool = setting(True, FLAG, "Write a line for each request, at level info.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    server: ServerSettings = field(default_factory=ServerSettings)
    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    keys: KeySettings = field(default_factory=KeySettings)
    tokens: TokenSettings = field(default_factory=TokenSettings)
    login: LoginSettings = field(default_factory=LoginSettings)
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    storage: StorageSettings = field(default_factory=StorageSettings)
    mail: MailSettings = field(default_factory=MailSettings)
    outgoing: OutgoingSettings = field(default_factory=OutgoingSettings)
    webhooks: WebhookSettings = field(default_factory=WebhookSettings)
    oauth: OAuthSettings = field(default_factory=OAuthSettings)
    jobs: JobSettings = field(default_factory=JobSettings)
    sql: SqlSettings = field(default_factory=SqlSettings)
    pages: PageSettings = field(default_factory=PageSettings)
    logs: LogSettings = field(default_factory=LogSettings)
    tracing: TracingSettings = field(default_factory=TracingSettings)
    # The file that was read, if any: jobs must not see it, because it may hold secrets.
    file: Path | None = field(default=None, compare=False)
    # By key, in words, where a value comes from that is not the default.
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def base_url(self) -> str:
        """The address that links begin with: as set, or as called, or a local one."""
        return self.server.base_url or called_address.get() or self._url("localhost")

    def local_urls(self) -> dict[bytes, str]:
        """The addresses of a hub without a set one, by the Host headers that call it so."""
        if self.server.base_url is not None or self.server.host not in _LOCAL_HOSTS:
            return {}
        urls = [self._url(name) for name in ("localhost", "127.0.0.1", "[::1]")]
        return {url.removeprefix("http://").encode(): url for url in urls}

    def _url(self, local_name: str) -> str:
        host = self.server.host
        if host in _LOCAL_HOSTS:
            host = local_name
        elif ":" in host:
            host = f"[{host}]"
        return f"http://{host}:{self.server.port}"

    @property
    def database_url(self) -> str:
        return self.database.url or f"sqlite:///{self.database.data_dir.as_posix()}/hub.db"

    @property
    def jobs_domain(self) -> str:
        return self.jobs.domain or "jobs.localhost"
