"""The YAML loader: what plain text means, and what is refused."""

import pytest

from hublet.core.yaml_loader import (
    LARGEST_TEXT,
    MOST_NESTED,
    MOST_WORK,
    WORK_OF_AN_EVENT,
    InvalidYaml,
    load,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("", None, id="nothing"),
        pytest.param("# only a comment", None, id="a comment"),
        pytest.param("[~, null, Null, NULL, ]", [None] * 4, id="null"),
        pytest.param("[true, True, TRUE]", [True] * 3, id="true"),
        pytest.param("[false, False, FALSE]", [False] * 3, id="false"),
        pytest.param("[yes, no, on, off, y, n]", ["yes", "no", "on", "off", "y", "n"], id="words"),
        pytest.param("[0, -7, +7, 012, 0o14, 0xfF]", [0, -7, 7, 12, 12, 255], id="integers"),
        pytest.param("[1.5, -.5, 1., 1e3, 1_000]", [1.5, -0.5, 1.0, 1000.0, "1_000"], id="floats"),
        pytest.param("[.nan, .inf, -.Inf, 1e999]", ["nan", "inf", "-inf", "inf"], id="not finite"),
        pytest.param("[1:30, 190:20:30, 0b1]", ["1:30", "190:20:30", "0b1"], id="base 60 and 2"),
        pytest.param("2024-01-31", "2024-01-31", id="a date"),
        pytest.param("['1', \"true\"]", ["1", "true"], id="quoted"),
        pytest.param("[-, +, ., ..., 0x, =]", ["-", "+", ".", "...", "0x", "="], id="no numbers"),
        pytest.param("1" * 101, "1" * 101, id="digits without end are text"),
        pytest.param("a: |\n  b\n  c\n", {"a": "b\nc\n"}, id="a literal block"),
        pytest.param("a: >\n  b\n  c\n", {"a": "b c\n"}, id="a folded block"),
        pytest.param("1: a\ntrue: b\n~: c", {"1": "a", "true": "b", "~": "c"}, id="names are text"),
        pytest.param("<<: {a: b}", {"<<": {"a": "b"}}, id="no merge"),
        pytest.param("a: &x [b]", {"a": ["b"]}, id="an anchor that nobody uses"),
        pytest.param("[!!str 1, !!int '1', !!float 2]", ["1", 1, 2], id="tags of the core"),
        pytest.param("a: !!map {b: !!seq [c]}", {"a": {"b": ["c"]}}, id="tags of collections"),
        pytest.param("\ufeffa: b", {"a": "b"}, id="a mark of the byte order"),
    ],
)
def test_plain_text_means_what_yaml_1_2_says(text: str, value: object) -> None:
    assert load(text) == value


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        pytest.param("a: 1\nb: [", "It is no YAML: did not find expected node content", 3, id="broken"),
        pytest.param("a: 1\nb: *x", "It must not use aliases (*name)", 2, id="an alias"),
        pytest.param("a: &x [*x]", "It must not use aliases (*name)", 1, id="an alias to itself"),
        pytest.param("a: 1\na: 2", 'The name "a" is there twice', 2, id="a name twice"),
        pytest.param("[a]: 1", "A name must be text, not a list or a mapping", 1, id="a list as name"),
        pytest.param("? {a: b}\n: 1", "A name must be text, not a list or a mapping", 1, id="a mapping as name"),
        pytest.param("a: 0x" + "f" * 20, "It has a number that is too large", 1, id="a number"),
        pytest.param("a: 9223372036854775808", "It has a number that is too large", 1, id="64 bits"),
        pytest.param('a: "\\0"', "It must not contain the NUL character", 1, id="NUL"),
        pytest.param("a: \x07", "It must not contain control characters", None, id="a bell"),
        pytest.param("a: \ud800", "It is no Unicode text", None, id="half a character"),
        pytest.param("a: !!binary eA==", "The tag !!binary is unknown, or does not fit its value", 1, id="binary"),
        pytest.param("a: !!set {b}", "The tag !!set is unknown, or does not fit its value", 1, id="a set"),
        pytest.param("a: !!int x", "The tag !!int is unknown, or does not fit its value", 1, id="no integer"),
        pytest.param("!mine a: 1", "The tag !mine is unknown, or does not fit its value", 1, id="of a name"),
        pytest.param("%YAML 1.1\n---\na: 1", "It must not use directives (a line that begins with %)", None, id="a directive"),
        pytest.param("a\n...\n---\nb", "It must be one document", 3, id="two documents"),
        pytest.param("[" * (MOST_NESTED + 1), "It is nested more than 20 times", 1, id="nesting"),
        pytest.param("x" * (LARGEST_TEXT + 1), "It has more than 1048576 bytes", None, id="size"),
        pytest.param("é" * (LARGEST_TEXT // 2 + 1), "It has more than 1048576 bytes", None, id="size in bytes"),
    ],
)  # fmt: skip
def test_what_is_refused_is_told_with_its_line(text: str, problem: str, line: int | None) -> None:
    with pytest.raises(InvalidYaml) as refused:
        load(text)

    assert (refused.value.problem, refused.value.line) == (problem, line)


def test_as_much_as_the_limits_allow_is_read() -> None:
    assert load("[" * MOST_NESTED + "]" * MOST_NESTED) is not None
    assert load("x" * LARGEST_TEXT) == "x" * LARGEST_TEXT
    assert load("a: 9223372036854775807") == {"a": 2**63 - 1}


def test_the_more_text_the_fewer_values() -> None:
    """Some thousands of short ones, or five hundred beside a megabyte of text."""
    few, many = 500, 4500

    assert load("[" + "a," * many + "]") == ["a"] * many
    long = "[" + "a," * many + "x" * (LARGEST_TEXT - 2 * many - 2) + "]"
    with pytest.raises(InvalidYaml) as refused:
        load(long)
    assert refused.value.problem == (
        f"It has more than {(MOST_WORK - LARGEST_TEXT) // WORK_OF_AN_EVENT} names and values"
    )
    assert load("[" + "a," * few + "x" * (LARGEST_TEXT - 2 * few - 2) + "]")[:2] == ["a", "a"]
