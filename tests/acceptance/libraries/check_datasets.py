"""`datasets` pushes tables to the hub, and loads them again: whole, streamed, by revision."""

from collections.abc import Callable
from pathlib import Path

import pytest
from datasets import Dataset, DatasetDict, load_dataset
from huggingface_hub import HfApi

ROWS = 2_000


def _table(rows: int = ROWS) -> Dataset:
    return Dataset.from_dict(
        {"id": list(range(rows)), "text": [f"shovel {number} of coal" for number in range(rows)]}
    )


def test_a_dataset_is_pushed_and_loaded(api: HfApi, new_name: Callable[[], str]) -> None:
    name = new_name()
    _table().push_to_hub(name)

    loaded = load_dataset(name, split="train")

    assert loaded.to_dict() == _table().to_dict()
    [parquet] = [
        entry
        for entry in api.list_repo_tree(name, "data", repo_type="dataset")
        if entry.path.endswith(".parquet")
    ]
    assert parquet.lfs is not None
    assert parquet.xet_hash is not None


def test_rows_come_one_by_one_as_a_stream(new_name: Callable[[], str]) -> None:
    name = new_name()
    _table().push_to_hub(name)

    stream = load_dataset(name, split="train", streaming=True)

    assert [row["id"] for row in stream.take(3)] == [0, 1, 2]
    assert sum(1 for _ in stream) == ROWS
    assert next(iter(stream.skip(ROWS - 1))) == {
        "id": ROWS - 1,
        "text": f"shovel {ROWS - 1} of coal",
    }


def test_splits_shards_and_configurations(new_name: Callable[[], str]) -> None:
    name = new_name()
    DatasetDict({"train": _table(), "test": _table(10)}).push_to_hub(
        name, "first", num_shards={"train": 3, "test": 1}
    )
    _table(5).push_to_hub(name, "second", split="test")

    first = load_dataset(name, "first")

    assert {split: table.num_rows for split, table in first.items()} == {"train": ROWS, "test": 10}
    assert first["train"]["id"][:] == list(range(ROWS))
    assert load_dataset(name, "second", split="test").num_rows == 5


def test_a_second_push_replaces_the_first_which_stays_in_the_history(
    api: HfApi, new_name: Callable[[], str]
) -> None:
    name = new_name()
    _table(3).push_to_hub(name)
    before = api.dataset_info(name).sha

    _table(4).push_to_hub(name)

    assert load_dataset(name, split="train").num_rows == 4
    assert load_dataset(name, split="train", revision=before).num_rows == 3


def test_a_private_dataset_is_loaded_by_its_owner_alone(new_name: Callable[[], str]) -> None:
    name = new_name()
    _table(3).push_to_hub(name, private=True)

    # Once it was loaded, it is there for everybody on this machine.
    with pytest.raises(Exception, match="doesn't exist on the Hub or cannot be accessed"):
        load_dataset(name, split="train", token=False)
    assert load_dataset(name, split="train").num_rows == 3


def test_files_in_a_repository_are_a_dataset(
    api: HfApi, new_name: Callable[[], str], tmp_path: Path
) -> None:
    name = new_name()
    (tmp_path / "train.csv").write_text("id,text\n1,coal\n2,steam\n")
    (tmp_path / "test.csv").write_text("id,text\n3,water\n")
    api.create_repo(name, repo_type="dataset")
    api.upload_folder(repo_id=name, folder_path=tmp_path, repo_type="dataset")

    loaded = load_dataset(name)

    assert loaded["train"]["text"][:] == ["coal", "steam"]
    assert loaded["test"]["text"][:] == ["water"]
