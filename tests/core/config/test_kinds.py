from ipaddress import IPv4Address, IPv4Network, ip_network
from pathlib import Path

import pytest

from hublet.core import config
from hublet.core.config import ConfigurationError, Settings, load
from hublet.core.sealing import KeyRing

KEY = "A" * 43


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def value_of(settings: Settings, key: str) -> object:
    group, name = key.split(".")
    return getattr(getattr(settings, group), name)


@pytest.mark.parametrize(
    ("key", "given", "value"),
    [
        pytest.param("server.test_mode", "YES", True, id="yes is true"),
        pytest.param("server.test_mode", "off", False, id="off is false"),
        pytest.param("server.test_mode", "1", True, id="one is true"),
        pytest.param("server.test_mode", True, True, id="true as TOML writes it"),
        pytest.param("server.port", " 0 ", 0, id="blanks around a number do not count"),
        pytest.param("server.stop_grace_seconds", 3, 3.0, id="a whole number of seconds"),
        pytest.param("server.stop_grace_seconds", "0.5", 0.5, id="part of a second"),
        pytest.param("server.base_url", "HTTPS://Hub.Example/", "https://hub.example", id="slash"),
        pytest.param("server.base_url", "http://[::1]:80", "http://[::1]:80", id="IPv6 base URL"),
        pytest.param("server.trusted_proxies", "", (), id="an empty list"),
        pytest.param(
            "server.trusted_proxies",
            "10.0.0.0/8, ::1",
            (ip_network("10.0.0.0/8"), ip_network("::1/128")),
            id="a list with commas",
        ),
        pytest.param(
            "outgoing.allow", ["10.1.2.3"], (ip_network("10.1.2.3/32"),), id="a TOML array"
        ),
        pytest.param("jobs.network", "Outbound", "outbound", id="a word in capitals"),
        pytest.param(
            "jobs.network_range", "10.8.0.0/24", IPv4Network("10.8.0.0/24"), id="a range of 256"
        ),
        pytest.param(
            "jobs.network_allow",
            "10.8.0.0/16, 10.9.0.1",
            (IPv4Network("10.8.0.0/16"), IPv4Network("10.9.0.1/32")),
            id="networks of IPv4",
        ),
        pytest.param(
            "jobs.nameservers", ["10.0.0.53"], (IPv4Address("10.0.0.53"),), id="addresses"
        ),
        pytest.param("database.data_dir", "~", Path.home(), id="the home folder"),
        pytest.param("database.url", "sqlite:///a b.db", "sqlite:///a b.db", id="an SQLite file"),
        pytest.param(
            "database.url",
            "postgres://u:p%40@a:1,b:2/hub?sslmode=require",
            "postgres://u:p%40@a:1,b:2/hub?sslmode=require",
            id="PostgreSQL on two hosts",
        ),
        pytest.param("database.url", "postgresql:///hub", "postgresql:///hub", id="a local socket"),
        pytest.param("keys.ring", f"a:{KEY}, b:{KEY}=", f"a:{KEY},b:{KEY}=", id="two keys"),
        pytest.param("keys.ring", [f"a:{KEY}"], f"a:{KEY}", id="keys as a TOML array"),
        pytest.param("tokens.prefix", "Acme2026_", "Acme2026_", id="a prefix of eight"),
        pytest.param("mail.smtp_url", "smtps://mail", "smtps://mail", id="mail without password"),
        pytest.param("mail.sender", "hub@example.com", "hub@example.com", id="a bare address"),
        pytest.param("logs.level", "DEBUG", "debug", id="a level in capitals"),
    ],
)
def test_a_value_is_read(key: str, given: object, value: object) -> None:
    read = value_of(load({key: given}, {}), key)

    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("server.host", ["", " ", "a b", "http://a", 1]),
        ("server.port", ["", "-1", "65536", "80.0", 80.0, True, "tcp://10.0.0.1:8000"]),
        ("server.base_url", ["hub", "ftp://hub", "http://", "http://hub/a", "http://hub//"]),
        ("server.base_url", ["http://hub?a", "http://hub#a", "http://u@hub", "http://a b"]),
        ("server.base_url", ["http://hub:65536", "http://hub:0", "http://[1]", "http://hub:x"]),
        ("server.trusted_proxies", ["10.0.0.1/8", "10.0.0.0/8,", "hub", 10, [10], {}]),
        ("server.test_mode", ["", "maybe", 2, 1.0]),
        ("jobs.network", ["machine", "", 1]),
        ("jobs.network_range", ["10.0.0.0/25", "10.0.0.1/16", "11.0.0.0/16", "fd00::/48", ""]),
        ("jobs.network_allow", ["::/0", "10.0.0.1/8", 10]),
        ("jobs.nameservers", ["10.0.0.0/8", "::1", "localhost"]),
        ("server.stop_grace_seconds", ["", "nan", "inf", "-1", 10**400, [1], False]),
        ("database.data_dir", ["", 1, "a\x00b", "~nobody-of-this-name/x"]),
        ("database.url", ["", "mysql://a/b", "sqlite:///", "sqlite://hub.db", "hub.db"]),
        ("database.url", ["postgresql://u:a/b@host/hub", "postgresql://u:a@b@host/hub"]),
        ("keys.ring", ["", [], "a", f"a:{KEY[1:]}", f":{KEY}", f"a:{KEY},a:{KEY}", f"a:{KEY},"]),
        ("tokens.prefix", ["", "_", "hf", "hf__", "a_b_", "api_", "api_org", "Acme2026a_"]),
        ("tokens.cache_seconds", ["1.1", "-0.1"]),
        ("worker.batch_size", ["0", "1000000001"]),
        ("mail.smtp_url", ["", "mail", "http://mail", "smtp://u@mail", "smtp://u:p@mail/x"]),
        ("mail.sender", ["", "hub", "Hub <hub@a", "Hub\nBcc: <a@b>", "a@b c@d"]),
        ("jobs.domain", ["", "jobs_", "http://jobs", ".jobs", "jobs:80"]),
        ("jobs.images", ["python", "=host", "python:*=", "a=host,", 1]),
        ("jobs.runner", ["", "podman"]),
        ("jobs.cores", ["0", "-1"]),
        ("logs.level", ["", "loud"]),
        ("logs.format", ["xml"]),
    ],
)
def test_a_value_that_breaks_the_rule_of_its_setting_is_refused(
    key: str, values: list[object]
) -> None:
    rule = next(info.type for info in config.describe() if info.toml_key == key)
    for value in values:
        with pytest.raises(ConfigurationError) as caught:
            load({key: value}, {})
        assert str(caught.value).startswith(f"{key}, from a flag, must be {rule}")


def test_every_default_obeys_the_rule_of_its_setting() -> None:
    for info in config.describe():
        default = value_of(Settings(), info.toml_key)
        if default is not None:
            assert value_of(load({info.toml_key: default}, {}), info.toml_key) == default


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        pytest.param("postgresql://u:p@h:1/d", "postgresql://u:***@h:1/d", id="a password"),
        pytest.param("postgresql://u:a/b@c@h/d", "postgresql://u:***@h/d", id="not encoded"),
        pytest.param("postgresql://u@h:1/d", "postgresql://u@h:1/d", id="no password"),
        pytest.param("postgresql://h:1/d", "postgresql://h:1/d", id="no user"),
        pytest.param("sqlite:////data/hub.db", "sqlite:////data/hub.db", id="a file"),
        pytest.param(
            "postgresql:///d?password=p&sslpassword=q&x=y",
            "postgresql:///d?password=***&sslpassword=***&x=y",
            id="passwords in the query",
        ),
    ],
)
def test_a_safe_database_url_has_no_password(url: str, safe: str) -> None:
    assert config.safe_database_url(url) == safe


@pytest.mark.parametrize(
    ("changes", "url"),
    [
        pytest.param({}, "http://localhost:8000", id="by default"),
        pytest.param({"server.host": "10.1.2.3"}, "http://10.1.2.3:8000", id="an address"),
        pytest.param({"server.host": "fd00::2"}, "http://[fd00::2]:8000", id="an IPv6 address"),
        pytest.param({"server.host": "0.0.0.0"}, "http://localhost:8000", id="every IPv4 address"),
        pytest.param({"server.host": "::"}, "http://localhost:8000", id="every address"),
        pytest.param({"server.host": "::1", "server.port": 80}, "http://localhost:80", id="IPv6"),
        pytest.param({"server.base_url": "https://hub"}, "https://hub", id="as it is set"),
    ],
)
def test_the_base_url_follows_from_host_and_port(changes: dict[str, object], url: str) -> None:
    assert load(changes, {}).base_url == url


def test_the_database_is_a_file_in_the_data_folder_unless_a_url_is_set() -> None:
    url = "postgresql://db/hub"

    assert load(environ={}).database_url == "sqlite:///hublet-data/hub.db"
    assert load({"database.data_dir": "/srv"}, {}).database_url == "sqlite:////srv/hub.db"
    assert load({"database.url": url}, {}).database_url == url


def test_the_domain_of_jobs_is_local_unless_it_is_set() -> None:
    assert load(environ={}).jobs_domain == "jobs.localhost"
    assert load({"jobs.domain": "jobs.example.com"}, {}).jobs_domain == "jobs.example.com"


def test_the_key_ring_can_read_what_is_let_through() -> None:
    ring = load({"keys.ring": f"new-1:{KEY},{'x' * 32}:{KEY}="}, {}).keys.ring

    assert ring is not None
    assert [key.id for key in KeyRing.parse(ring).keys] == ["new-1", "x" * 32]
