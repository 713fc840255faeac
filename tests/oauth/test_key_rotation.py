"""Which signing key is used and shown, as time goes by."""

from datetime import UTC, datetime, timedelta

import pytest

from hublet.oauth import signing_keys
from hublet.oauth.records import SigningKey

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def a_key(name: str, *, signs_from: datetime) -> SigningKey:
    return SigningKey(
        id=name,
        sealed_private=b"",
        public={"kid": name},
        created_at=signs_from - DAY,
        signs_from=signs_from,
    )


OLD = a_key("old", signs_from=START)
NEW = a_key("new", signs_from=START + 90 * DAY)
# As the store gives them: those first that sign last.
BOTH = [NEW, OLD]


@pytest.mark.parametrize(
    ("at", "signs", "shown"),
    [
        pytest.param(START, "old", ["new", "old"], id="the next one is shown before it signs"),
        pytest.param(START + 90 * DAY, "new", ["new", "old"], id="from its moment on it signs"),
        pytest.param(
            START + 90 * DAY + timedelta(minutes=119),
            "new",
            ["new", "old"],
            id="what the old one signed can still be checked",
        ),
        pytest.param(
            START + 90 * DAY + timedelta(hours=2), "new", ["new"], id="then the old one goes"
        ),
    ],
)
def test_one_key_signs_and_all_that_matter_are_shown(
    at: datetime, signs: str, shown: list[str]
) -> None:
    found = signing_keys.signing_key(BOTH, at=at)

    assert found is not None
    assert found.id == signs
    assert [key.id for key in signing_keys.published_keys(BOTH, at=at)] == shown
    assert [key.id for key in signing_keys.outdated_keys(BOTH, at=at)] == [
        key.id for key in BOTH if key.id not in shown
    ]


def test_without_keys_nothing_signs_and_nothing_is_due() -> None:
    assert signing_keys.signing_key([], at=START) is None
    assert signing_keys.published_keys([], at=START) == []
    assert not signing_keys.is_next_due([], at=START)


@pytest.mark.parametrize(
    ("days", "due"),
    [
        pytest.param(88, False, id="not before its time"),
        pytest.param(89, True, id="a day before the old one has signed for ninety"),
        pytest.param(200, True, id="late is better than never"),
    ],
)
def test_the_next_key_is_made_a_day_ahead(days: int, *, due: bool) -> None:
    assert signing_keys.is_next_due([OLD], at=START + days * DAY) is due


def test_a_key_that_waits_is_not_made_twice() -> None:
    assert not signing_keys.is_next_due(BOTH, at=START + 89.5 * DAY)
