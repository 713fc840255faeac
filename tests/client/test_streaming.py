"""A stream that breaks and is taken up again."""

from collections.abc import Iterator
from itertools import islice

import pytest

from client.scripted_server import ScriptedResponse, scripted_server
from hublet.client import Event, Hub, NotReachable, Refused, follow

OPENING = b": listening\nretry: 1000\nid: 1\n\n"


def said(body: bytes) -> ScriptedResponse:
    return ScriptedResponse(body=OPENING + body, kind="text/event-stream; charset=utf-8")


def event(number: int) -> bytes:
    return f"event: delivery\nid: {number}\ndata: {number}\n\n".encode()


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it would have waited each time."""
    waited: list[float] = []
    monkeypatch.setattr("hublet.client.events.pause", waited.append)
    return waited


def names(events: Iterator[Event], count: int) -> list[str]:
    return [each.data for each in islice(events, count)]


def test_after_a_break_it_goes_on_behind_the_last_event(waits: list[float]) -> None:
    lost: list[str] = []
    begun: list[bool] = []
    with scripted_server(said(event(2) + event(3)), said(event(4))) as hub:
        events = follow(
            Hub(endpoint=hub.address, token="hf_x"),
            "/api/stream",
            {"a": "b"},
            on_connect=lambda: begun.append(True),
            on_disconnect=lost.append,
        )
        heard = names(events, 3)

    assert heard == ["2", "3", "4"]
    assert [each.headers.get("last-event-id") for each in hub.asked] == [None, "3"]
    assert [each.path for each in hub.asked] == ["/api/stream?a=b"] * 2
    assert {each.headers["accept"] for each in hub.asked} == {"text/event-stream"}
    assert (lost, len(begun), waits) == (["the hub ended the stream"], 2, [1])


def test_an_event_that_was_cut_is_not_told_and_not_passed_over() -> None:
    cut = event(3)[:-1]
    with scripted_server(said(event(2) + cut), said(event(3))) as hub:
        heard = names(follow(Hub(endpoint=hub.address), "/"), 2)

    assert heard == ["2", "3"]
    assert hub.asked[1].headers["last-event-id"] == "2"


def test_where_to_begin_can_be_said() -> None:
    with scripted_server(said(event(2))) as hub:
        names(follow(Hub(endpoint=hub.address), "/", last_id="0"), 1)

    assert hub.asked[0].headers["last-event-id"] == "0"


def test_a_hub_that_fails_is_asked_again_ever_more_patiently(waits: list[float]) -> None:
    failing = [ScriptedResponse(status=status) for status in (500, 503, 429, 502, 500, 500)]
    with scripted_server(said(event(2)), *failing, said(event(3)), said(event(4))) as hub:
        heard = names(follow(Hub(endpoint=hub.address), "/"), 3)

    assert heard == ["2", "3", "4"]
    assert waits == [1, 2, 4, 8, 16, 30, 30, 1]


def test_a_hub_that_went_away_is_waited_for(waits: list[float]) -> None:
    lost: list[str] = []
    with scripted_server(said(event(2))) as hub:
        events = follow(Hub(endpoint=hub.address), "/", on_disconnect=lost.append)
        first = next(events)
    wait_three = iter([None, None, KeyboardInterrupt()])

    def came_back(_seconds: float) -> None:
        if (stop := next(wait_three)) is not None:
            raise stop

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("hublet.client.events.pause", came_back)
        with pytest.raises(KeyboardInterrupt):
            next(events)

    assert first.data == "2"
    assert lost == ["the hub ended the stream", "connection refused", "connection refused"]


def test_a_hub_that_never_answered_is_an_error() -> None:
    with pytest.raises(NotReachable):
        next(follow(Hub(endpoint="http://127.0.0.1:1"), "/"))


def test_a_refusal_is_final() -> None:
    gone = ScriptedResponse(status=404, body=b'{"error": "There is no webhook."}')
    with scripted_server(said(event(2)), gone) as hub:
        events = follow(Hub(endpoint=hub.address), "/")
        next(events)
        with pytest.raises(Refused, match="There is no webhook"):
            next(events)


def test_what_is_no_stream_is_told() -> None:
    with (
        scripted_server(ScriptedResponse(body=b"{}")) as hub,
        pytest.raises(NotReachable) as failed,
    ):
        next(follow(Hub(endpoint=hub.address), "/"))

    assert failed.value.reason == "what answers sent no events"
