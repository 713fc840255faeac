"""Runs inside the environment of a public client: it knows that client and nothing of Hublet.

`tests/acceptance/test_public_clients.py` starts a hub and then this suite, once per version.
"""

import itertools
import os
from collections.abc import Callable, Iterator

import pytest
from huggingface_hub import HfApi

_names = itertools.count(1)


@pytest.fixture
def api() -> HfApi:
    """The client of ada, who owns what these tests create."""
    return HfApi()


@pytest.fixture
def stranger() -> HfApi:
    """The client of grace, who has nothing to do with ada's repositories."""
    return HfApi(token=os.environ["STRANGERS_TOKEN"])


@pytest.fixture
def anonymous() -> HfApi:
    return HfApi(token=False)


@pytest.fixture
def new_name() -> Callable[[], str]:
    return lambda: f"ada/engine-{next(_names)}"


@pytest.fixture
def repo(api: HfApi, new_name: Callable[[], str]) -> Iterator[str]:
    """A public model of ada's."""
    name = new_name()
    api.create_repo(name)
    yield name
    api.delete_repo(name, missing_ok=True)
