import pytest

from hublet.client.events import Event, EventReader


def read(text: str, *, last_id: str | None = None) -> tuple[list[Event], EventReader]:
    reader = EventReader(last_id)
    events = [event for line in text.split("\n")[:-1] if (event := reader.feed(line)) is not None]
    return events, reader


@pytest.mark.parametrize(
    ("text", "events"),
    [
        pytest.param(
            "event: delivery\nid: 7\ndata: {}\n\n",
            [Event(name="delivery", data="{}", id="7")],
            id="an event with all its fields",
        ),
        pytest.param(
            "data: a\ndata:b\ndata:  c\n\n",
            [Event(name="message", data="a\nb\n c", id=None)],
            id="lines of data are joined, and one blank is taken away",
        ),
        pytest.param(": listening\n\n: still\n\n", [], id="comments are no events"),
        pytest.param("id: 7\n\n", [], id="an id alone is no event"),
        pytest.param("data: a\n", [], id="an event that is not complete is none"),
        pytest.param(
            "id: 7\ndata: a\n\nevent: other\ndata: b\n\n",
            [Event(name="message", data="a", id="7"), Event(name="other", data="b", id="7")],
            id="an id lasts, a name does not",
        ),
        pytest.param(
            "id: a\0b\nnothing\nunknown: x\ndata\n\n",
            [Event(name="message", data="", id=None)],
            id="what means nothing is passed over",
        ),
    ],
)
def test_lines_become_events(text: str, events: list[Event]) -> None:
    assert read(text)[0] == events


def test_an_id_alone_is_where_to_go_on() -> None:
    _, reader = read("id: 7\n\nid: 8\ndata: cut")

    assert reader.last_id == "7"


def test_what_was_cut_is_forgotten_when_the_connection_begins_anew() -> None:
    _, reader = read("event: old\nid: 8\ndata: cut\n", last_id="7")

    reader.restart()

    assert [reader.feed("data: new"), reader.feed("")] == [
        None,
        Event(name="message", data="new", id="7"),
    ]


@pytest.mark.parametrize(
    ("line", "seconds"),
    [("retry: 1500", 1.5), ("retry: soon", None), ("retry: -1", None), ("retry: ٣", None)],
)
def test_the_hub_says_how_long_to_wait(line: str, seconds: float | None) -> None:
    reader = EventReader()

    reader.feed(line)

    assert reader.retry_seconds == seconds


def test_the_first_word_of_each_connection_is_told() -> None:
    begun: list[bool] = []
    reader = EventReader(on_connect=lambda: begun.append(True))

    before = reader.has_connected
    for line in (": listening", "", "data: a", ""):
        reader.feed(line)
    once = len(begun)
    reader.restart()
    reader.feed("")

    assert (before, reader.has_connected, once, len(begun)) == (False, True, 1, 2)


def test_data_is_read_as_json() -> None:
    assert Event(name="x", data='{"a": [1]}', id=None).read() == {"a": [1]}
