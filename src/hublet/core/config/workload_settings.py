"""Settings of what runs for users: jobs, and queries over datasets."""

from ipaddress import IPv4Address, IPv4Network

from hublet.core.config.kinds import (
    CLUSTER_LABELS,
    CLUSTER_NAME,
    CLUSTER_NAMES,
    COUNT,
    DEVICES,
    DOMAIN,
    FLAG,
    FLAVORS,
    IMAGE_NAME,
    IMAGES,
    IPV4_ADDRESSES,
    IPV4_NETWORKS,
    MIRRORS,
    NETWORK,
    PRIVATE_RANGE,
    PULL_POLICIES,
    REGISTRIES,
    RESOURCE_NAME,
    RUNNERS,
    SQL_SANDBOXES,
    FlavorSize,
    ImageSource,
    RegistryMirror,
    RegistryRule,
    number,
    setting,
)
from hublet.core.dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    domain: str | None = setting(
        None, DOMAIN, "Exposed ports of jobs are hosts under it.", unset="jobs.localhost"
    )
    flavors: tuple[FlavorSize, ...] | None = setting(
        None,
        FLAVORS,
        "The flavors that jobs may ask for, and what each gets of this machine.",
        unset="cpu-basic, with 2 cores and 16G at most",
    )
    shared_devices: tuple[str, ...] = setting(
        (), DEVICES, "What every job of a flavor with devices gets beside those of its own."
    )
    timeout_seconds: int = setting(
        1800, COUNT, "How long an attempt of a job may take that does not say."
    )
    max_timeout_seconds: int = setting(604_800, COUNT, "The longest time that a job may ask for.")
    runner: str = setting(
        "auto",
        RUNNERS,
        "What runs jobs; auto is the sandbox, and without one nothing (in test mode: processes).",
    )
    images: tuple[ImageSource, ...] = setting(
        (),
        IMAGES,
        "What the images of jobs are on this machine: roots or OCI images; the first that fits counts.",
    )
    host_programs: bool = setting(
        True,
        FLAG,
        "Whether the sandbox runs every image with this machine's own programs while jobs.images is empty.",
    )
    registries: tuple[RegistryRule, ...] = setting(
        (),
        REGISTRIES,
        "Other registries that the sandbox pulls images from; those with * only at public addresses.",
    )
    registry_mirrors: tuple[RegistryMirror, ...] = setting(
        (), MIRRORS, "Where images of a registry are asked for first; the registry comes after it."
    )
    pull_policy: str = setting(
        "always",
        PULL_POLICIES,
        "Whether a registry is asked for each job what a tag is now, or only without the image.",
    )
    image_bytes: int = setting(
        50 * 2**30,
        number(2**20, 10**15, int),
        "The most that the layers of a pulled image may have, in bytes.",
    )
    image_cache_bytes: int = setting(
        100 * 10**9,
        number(0, 10**15, int),
        "What a machine keeps of images that no job uses now, unpacked, in bytes; the least recently used go first.",
    )
    network: str = setting(
        "none",
        NETWORK,
        "What jobs in a sandbox can reach: nothing, public addresses, or all that this machine can.",
    )
    network_range: IPv4Network = setting(
        IPv4Network("10.213.0.0/16"),
        PRIVATE_RANGE,
        "Where jobs with a network of their own get their addresses; routes of the machine are left out.",
    )
    network_allow: tuple[IPv4Network, ...] = setting(
        (), IPV4_NETWORKS, "Private networks that jobs may reach, where jobs.network is outbound."
    )
    nameservers: tuple[IPv4Address, ...] | None = setting(
        None,
        IPV4_ADDRESSES,
        "Whom jobs ask for names, where jobs.network is outbound.",
        unset="those of this machine",
    )
    start_seconds: int = setting(
        3600, COUNT, "How long an attempt that got its place may take to begin."
    )
    grace_seconds: float = setting(
        10.0, number(0, 3600), "How long a job may take to end by itself once it was asked to."
    )
    log_bytes: int = setting(
        2**30, number(1024, 10**15, int), "What is kept of what a job prints, in bytes."
    )
    ssh_port: int = setting(
        2222,
        number(0, 65535, int),
        "Where jobs with SSH are entered, beside host; 0: nowhere (in test mode: any free port).",
    )
    ssh_idle_seconds: int = setting(
        1800, COUNT, "How long a connection by SSH may be silent before it is closed."
    )
    ssh_attempts: int = setting(
        100, COUNT, "Keys of an address that are refused in 15 minutes; quiet in test mode."
    )
    concurrent: int = setting(100, COUNT, "Jobs that run at the same time, at most.")
    cores: float | None = setting(
        None,
        number(0.1, 100_000),
        "The cores that running jobs share out; more than there are lets them take turns.",
        unset="those of this machine",
    )
    memory_bytes: int | None = setting(
        None,
        number(2**20, 10**15, int),
        "The memory that running jobs share out, in bytes; once it is set, groups do not share it.",
        unset="that of this machine",
    )
    namespace: str | None = setting(
        None,
        CLUSTER_NAME,
        "The namespace of the cluster in which jobs run, where jobs.runner is kubernetes.",
        unset="that of the kubeconfig or the service account",
    )
    helper_image: str | None = setting(
        None,
        IMAGE_NAME,
        "The image that fills and reads the volumes of pods: the hub's own, or any with sh and tar.",
        unset="none: jobs with volumes and spaces are refused",
    )
    pull_secrets: tuple[str, ...] = setting(
        (), CLUSTER_NAMES, "Secrets of the namespace by which a cluster pulls the images of jobs."
    )
    queue: str | None = setting(
        None, CLUSTER_NAME, "The queue of Kueue in which pods of jobs wait for their quota."
    )
    pod_user: int = setting(
        1000, number(1, 2**31 - 1, int), "The user that jobs run as in a cluster; never root."
    )
    pod_disk_bytes: int | None = setting(
        None, number(2**20, 10**15, int), "What a pod of a job may write to its node, in bytes."
    )
    hub_pods: tuple[str, ...] = setting(
        (),
        CLUSTER_LABELS,
        "The labels of the hub's own pods where it runs in the cluster of its jobs: ports of jobs are "
        "then reached at the address of their pod.",
    )
    gpu_resource: str = setting(
        "nvidia.com/gpu", RESOURCE_NAME, "What a cluster calls the graphics cards of gpu=n."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlSettings:
    anonymous: bool = setting(
        True, FLAG, "Callers without a token may query public datasets, one query at a time."
    )
    sandbox: str = setting(
        "auto",
        SQL_SANDBOXES,
        "What holds a query in; auto is bubblewrap, and without it a process that may do little.",
    )
    queries: int = setting(8, COUNT, "Queries that the hub runs at the same time.")
    queries_per_user: int = setting(3, COUNT, "Of these, the queries of one user.")
    seconds: float = setting(
        10.0, number(0.1, 600), "How long a query may run; it is killed two seconds later."
    )
    preview_seconds: float = setting(
        60.0,
        number(0.1, 3600),
        "The same for column statistics and Parquet exports, which are kept.",
    )
    memory_bytes: int = setting(
        512 << 20,
        number(64 << 20, 1 << 40, int),
        "What DuckDB may take for a query; the process as a whole 1.5 GiB more.",
    )
    rows: int = setting(10_000, COUNT, "The most rows of an answer.")
    answer_bytes: int = setting(
        10_485_760, number(1024, 1 << 40, int), "The most bytes of an answer."
    )
    files: int = setting(100, number(1, 1000, int), "The most files that a query reads.")
    file_bytes: int = setting(
        10 << 30, number(1, 10**15, int), "What the files of a query may have together, in bytes."
    )
    export_bytes: int = setting(
        1 << 30,
        number(1, 10**15, int),
        "Other files than Parquet are exported as such up to this size, before and after.",
    )
    cache_bytes: int = setting(
        20 << 30,
        number(0, 10**18, int),
        "What a node keeps of files that queries read and of Parquet exports, in bytes.",
    )
