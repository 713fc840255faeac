import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hublet.core import config
from hublet.core.config import SettingInfo

PAGE = (Path(__file__).parent.parent / "docs" / "operating.md").read_text(encoding="utf-8")
SETTINGS = config.describe()


def rows() -> Iterator[list[str]]:
    """Yield the cells of every table row, without marks for code."""
    for line in PAGE.splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.replace("`", "").strip("|").split("|")]


def example() -> str:
    [text] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    return str(text)


@pytest.mark.parametrize("info", SETTINGS, ids=lambda info: info.toml_key)
def test_every_setting_has_its_row_in_the_page(info: SettingInfo) -> None:
    row = [info.toml_key, info.variable, info.default, info.type, info.sentence]

    assert list(rows()).count(row) == 1


def test_the_rows_stand_under_their_group() -> None:
    parts = re.split(r"^### (\w+)$", PAGE, flags=re.MULTILINE)[1:]
    keys = {
        name: re.findall(r"^\| `(\w+\.\w+)`", text, re.MULTILINE)
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }

    assert keys == {
        group: [info.toml_key for info in SETTINGS if info.group == group]
        for group in dict.fromkeys(info.group for info in SETTINGS)
    }


def test_no_variable_in_the_page_is_unknown() -> None:
    known = {info.variable for info in SETTINGS} | {config.CONFIG_VARIABLE}

    assert set(re.findall(r"HUBLET_\w*", PAGE)) == known


def test_the_secret_settings_are_all_named() -> None:
    [names] = re.findall(r"^The secret settings \((.*)\)", PAGE, re.MULTILINE)

    assert re.findall(r"[\w.]+", names) == [info.toml_key for info in SETTINGS if info.secret]


def test_the_example_names_every_setting_once() -> None:
    document = tomllib.loads(example())

    keys = [f"{group}.{name}" for group, table in document.items() for name in table]
    assert keys == [info.toml_key for info in SETTINGS]


def test_the_example_can_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "hublet.toml"
    path.write_text(example(), encoding="utf-8")

    settings = config.load({"config": path}, {})

    assert settings.base_url == "https://hub.example.com"
    assert settings.logs == config.LogSettings()
