"""Lists: every filter, order and property that the client can ask for."""

import json
import struct
import time
from collections.abc import Callable, Iterator
from typing import get_args

import pytest
from huggingface_hub import HfApi, hf_api
from huggingface_hub.errors import HfHubHTTPError

NewName = Callable[[], str]
SORTS = ("created_at", "downloads", "last_modified", "likes", "trending_score")


def _card(**fields: object) -> bytes:
    return f"---\n{json.dumps(fields)}\n---\n# A card\n".encode()


def _weights(parameters: int) -> bytes:
    header = json.dumps({"w": {"dtype": "F32", "shape": [parameters], "data_offsets": [0, 0]}})
    return struct.pack("<Q", len(header)) + header.encode()


@pytest.fixture
def linked(api: HfApi, new_name: NewName) -> Iterator[tuple[str, str, str]]:
    """A model, a dataset that it was trained on, and a space that uses both."""
    model, dataset, space = new_name(), new_name(), new_name()
    api.create_repo(model)
    api.create_repo(dataset, repo_type="dataset")
    api.create_repo(space, repo_type="space", space_sdk="static")
    cards = {
        "model": (
            model,
            _card(datasets=[dataset], base_model="ada/root", pipeline_tag="fill-mask"),
        ),
        "dataset": (dataset, _card(language=["fr"], task_categories=["summarization"])),
        "space": (space, _card(sdk="static", models=[model], datasets=[dataset])),
    }
    for repo_type, (name, card) in cards.items():
        api.upload_file(
            path_or_fileobj=card, path_in_repo="README.md", repo_id=name, repo_type=repo_type
        )
    yield model, dataset, space
    for repo_type, (name, _) in cards.items():
        api.delete_repo(name, repo_type=repo_type)


def test_models_are_filtered(api: HfApi, linked: tuple[str, str, str]) -> None:
    model, dataset, _ = linked

    for found in (
        api.list_models(trained_dataset=dataset),
        api.list_models(trained_dataset=dataset, pipeline_tag="fill-mask", gated=False),
        api.list_models(filter=["base_model:ada/root", f"dataset:{dataset}"], sort="likes"),
        api.list_models(search=model, author="ada"),
    ):
        assert [each.id for each in found] == [model]
    assert list(api.list_models(inference="warm")) == []
    assert list(api.list_models(inference_provider="all")) == []
    assert list(api.list_models(apps=["vllm", "ollama"])) == []


def test_models_are_found_by_their_size(api: HfApi, repo: str) -> None:
    api.upload_file(
        path_or_fileobj=_weights(7_000_000_123),
        path_in_repo="model.safetensors",
        repo_id=repo,
    )

    # A task reads the header soon after the commit.
    while not (found := list(api.list_models(num_parameters="min:7B,max:7.1B", sort="likes"))):
        time.sleep(0.05)

    assert [each.id for each in found] == [repo]
    assert list(api.list_models(num_parameters="max:7B", author="ada")) == []
    info = api.model_info(repo).safetensors
    assert info is not None
    assert (info.parameters, info.total) == ({"F32": 7_000_000_123}, 7_000_000_123)
    with pytest.raises(HfHubHTTPError, match="num_parameters must be in the form"):
        list(api.list_models(num_parameters="seven"))


def test_datasets_are_filtered(api: HfApi, linked: tuple[str, str, str]) -> None:
    _, dataset, _ = linked

    for found in (
        api.list_datasets(language="fr", task_categories="summarization"),
        api.list_datasets(dataset_name=dataset.removeprefix("ada/"), search="ada", gated=False),
        api.list_datasets(author="ada", language=["language:fr"]),
    ):
        assert [each.id for each in found] == [dataset]
    assert list(api.list_datasets(language="fr", size_categories="n<1K")) == []


def test_spaces_are_filtered_by_what_they_use(api: HfApi, linked: tuple[str, str, str]) -> None:
    model, dataset, space = linked

    for found in (
        api.list_spaces(models=model),
        api.list_spaces(datasets=[dataset], models=[model]),
        api.list_spaces(linked=True, author="ada"),
    ):
        assert [each.id for each in found] == [space]
    assert list(api.list_spaces(models="ada/root")) == []


@pytest.mark.parametrize("sort", SORTS)
def test_lists_have_every_order(api: HfApi, linked: tuple[str, str, str], sort: str) -> None:
    model, dataset, space = linked

    assert model in [each.id for each in api.list_models(sort=sort, full=True, limit=1000)]
    assert model in [
        each.id for each in api.list_models(sort=sort, cardData=True, fetch_config=True)
    ]
    assert dataset in [each.id for each in api.list_datasets(sort=sort, full=True)]
    assert space in [each.id for each in api.list_spaces(sort=sort, full=True)]


def test_every_property_can_be_expanded(api: HfApi, linked: tuple[str, str, str]) -> None:
    model, dataset, space = linked
    of_models = list(get_args(hf_api.ExpandModelProperty_T))
    of_datasets = list(get_args(hf_api.ExpandDatasetProperty_T))
    of_spaces = list(get_args(hf_api.ExpandSpaceProperty_T))

    [listed] = [each for each in api.list_models(expand=of_models) if each.id == model]
    alone = api.model_info(model, expand=of_models)
    assert (listed.spaces, listed.children_model_count) == ([space], 0)
    assert (listed.base_models, listed.trending_score) == (["ada/root"], 0)
    assert vars(listed) == vars(alone)
    [data] = [each for each in api.list_datasets(expand=of_datasets) if each.id == dataset]
    assert data.main_size == api.dataset_info(dataset, expand=of_datasets).main_size
    assert data.description == "# A card"
    [app] = [each for each in api.list_spaces(expand=of_spaces) if each.id == space]
    assert (app.models, app.datasets) == ([model], [dataset])
    assert app.sha == api.space_info(space, expand=of_spaces).sha
