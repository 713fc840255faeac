"""Receivers that break in every way: each attempt says why, the others are served, all arrives."""

from datetime import timedelta

import pytest

from hublet.core import clock
from hublet.core.database import Database
from outgoing_servers import (
    ENDLESS,
    Behaviour,
    dripping,
    dropping,
    half_closing,
    hanging,
    resetting,
    resetting_after_the_head,
    serving,
)
from webhooks.engine_rows import (
    a_webhook,
    attempts_of,
    change,
    delivering,
    settle,
    states_of,
    trigger,
)
from webhooks.receivers import receiving


@pytest.mark.parametrize(
    ("behave", "reasons"),
    [
        pytest.param(dropping, {"connection-lost"}, id="drops the connection"),
        pytest.param(resetting, {"connection-lost", "connection-failed"}, id="resets it"),
        pytest.param(hanging, {"timeout"}, id="never answers"),
        pytest.param(half_closing, {"connection-lost", "bad-answer"}, id="closes its half"),
        pytest.param(
            resetting_after_the_head, {"connection-lost", "connection-failed"}, id="breaks off"
        ),
        pytest.param(dripping(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"), {"timeout", "bad-answer"},
                     id="drips headers"),
        pytest.param(dripping(ENDLESS, b"1\r\na\r\n"), {"timeout"}, id="drips a body for ever"),
    ],
)  # fmt: skip
async def test_a_broken_receiver_is_named_and_gets_everything_once_it_is_mended(
    database: Database, behave: Behaviour, reasons: set[str]
) -> None:
    async with (
        serving(behave) as broken,
        receiving() as mended,
        delivering(database, deadline_seconds=0.5) as deliverer,
    ):
        webhook_id = await a_webhook(database, broken.url)
        healthy_id = await a_webhook(database, mended.url)
        [delivery_id, _] = await trigger(database, webhook_id, healthy_id)
        await settle(deliverer)
        [failed] = await attempts_of(database, delivery_id)
        assert failed["reason"] in reasons
        assert failed["detail"]
        assert await states_of(database, healthy_id) == [("delivered", None)]
        await change(database, webhook_id, url=mended.url)
        clock.move(timedelta(seconds=7))
        await settle(deliverer)
    assert await states_of(database, webhook_id) == [("delivered", None)]
    assert len(mended.requests) == 2
