"""What is shown of a space that is a tool."""

from typing import Any

import pytest

from hublet.accounts.records import Owner, OwnerType
from hublet.core.clock import now
from hublet.mcp.schemas import subdomain_of
from hublet.repos.cards import DEFAULT_EMOJI, emoji_of
from hublet.repos.records import Repo, RepoType, Visibility


def a_space(*, owner_name: str = "Ada", **changes: Any) -> Repo:
    defaults: dict[str, Any] = {
        "id": "a" * 24,
        "type": RepoType.space,
        "owner": Owner(id="b" * 24, name=owner_name, type=OwnerType.user),
        "name": "engine",
        "visibility": Visibility.public,
        "creator_id": "b" * 24,
        "created_at": now(),
        "updated_at": now(),
    }
    return Repo(**(defaults | changes))


@pytest.mark.parametrize(
    ("card", "emoji"),
    [
        pytest.param({"emoji": "🎨"}, "🎨", id="an emoji is shown"),
        pytest.param({"emoji": " 🎨\n"}, "🎨", id="blanks around it are not"),
        pytest.param({"emoji": "👨‍👩‍👧‍👦"}, "👨‍👩‍👧‍👦", id="one of several code points is one"),
        pytest.param(None, DEFAULT_EMOJI, id="without a card there is a default"),
        pytest.param({"title": "x"}, DEFAULT_EMOJI, id="a card may have none"),
        pytest.param({"emoji": 7}, DEFAULT_EMOJI, id="a number is none"),
        pytest.param({"emoji": ["🎨"]}, DEFAULT_EMOJI, id="a list is none"),
        pytest.param({"emoji": "  "}, DEFAULT_EMOJI, id="blanks are none"),
        pytest.param({"emoji": "x" * 17}, DEFAULT_EMOJI, id="a text is none"),
    ],
)
def test_the_emoji_is_the_one_of_the_card(card: dict[str, Any] | None, emoji: str) -> None:
    assert emoji_of(a_space(card=card)) == emoji


@pytest.mark.parametrize(
    ("owner", "name", "subdomain"),
    [
        pytest.param("ada", "engine", "ada-engine", id="owner and name with a dash"),
        pytest.param("Ada", "ENGINE2", "ada-engine2", id="in lower case"),
        pytest.param("ada", "my_engine.v2", "ada-my-engine-v2", id="dashes for all the rest"),
    ],
)
def test_the_subdomain_has_letters_digits_and_dashes(owner: str, name: str, subdomain: str) -> None:
    assert subdomain_of(a_space(owner_name=owner, name=name)) == subdomain
