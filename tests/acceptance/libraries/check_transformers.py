"""`transformers` saves to the hub and loads from it, without torch: configuration, tokenizer, weights."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import HfApi
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoConfig, AutoTokenizer, BertConfig, PreTrainedTokenizerFast

WORDS = {"[UNK]": 0, "[PAD]": 1, "coal": 2, "steam": 3, "engine": 4}
CONFIG = BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, vocab_size=5)
WEIGHTS = {"wheel": np.arange(3_000_000, dtype=np.float32).reshape(3_000, 1_000)}


@pytest.fixture
def repo(api: HfApi, new_name: Callable[[], str]) -> str:
    name = new_name()
    api.create_repo(name, private=True)
    return name


def _tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]")


def test_a_configuration_is_pushed_and_loaded(repo: str) -> None:
    CONFIG.push_to_hub(repo)

    loaded = AutoConfig.from_pretrained(repo)

    assert isinstance(loaded, BertConfig)
    assert loaded.hidden_size == 32


def test_a_tokenizer_is_pushed_and_loaded(repo: str) -> None:
    _tokenizer().push_to_hub(repo)

    loaded = AutoTokenizer.from_pretrained(repo)

    assert loaded("steam engine now")["input_ids"] == [3, 4, 0]
    assert loaded.pad_token == "[PAD]"


def test_what_was_saved_in_a_folder_is_loaded_with_its_weights(
    api: HfApi, repo: str, tmp_path: Path
) -> None:
    CONFIG.save_pretrained(tmp_path)
    _tokenizer().save_pretrained(tmp_path)
    save_file(WEIGHTS, tmp_path / "model.safetensors")
    api.upload_folder(repo_id=repo, folder_path=tmp_path)

    assert AutoConfig.from_pretrained(repo).vocab_size == 5
    assert AutoTokenizer.from_pretrained(repo).tokenize("coal steam") == ["coal", "steam"]
    loaded = load_file(api.hf_hub_download(repo, "model.safetensors"))
    assert np.array_equal(loaded["wheel"], WEIGHTS["wheel"])
    [weights] = api.get_paths_info(repo, "model.safetensors")
    assert weights.xet_hash is not None


def test_metadata_of_the_weights_are_read_without_a_download(
    api: HfApi, repo: str, tmp_path: Path
) -> None:
    save_file(WEIGHTS, tmp_path / "model.safetensors")
    api.upload_folder(repo_id=repo, folder_path=tmp_path)

    metadata = api.get_safetensors_metadata(repo)

    assert metadata.parameter_count == {"F32": 3_000_000}
