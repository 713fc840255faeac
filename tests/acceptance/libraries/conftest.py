"""Runs inside an environment with `datasets` and `transformers`, which know nothing of Hublet.

`tests/acceptance/test_libraries.py` starts a hub and then this suite.
"""

import itertools
from collections.abc import Callable

import pytest
from huggingface_hub import HfApi

_names = itertools.count(1)


@pytest.fixture
def api() -> HfApi:
    return HfApi()


@pytest.fixture
def new_name() -> Callable[[], str]:
    return lambda: f"ada/thing-{next(_names)}"
