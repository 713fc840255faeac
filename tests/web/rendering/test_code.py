"""Lines of source code."""

import re

import pytest

from hublet.web.rendering import code
from hublet.web.rendering.code import highlight, highlight_language

PYTHON = '''import os

def load(path: str) -> bool:  # <reads>
    """Two
    lines"""
    return True + len("a") - 0x1F
'''


def text_of(line: str) -> str:
    plain = re.sub(r"<[^>]*>", "", line)
    return (
        plain.replace("&lt;", "<").replace("&gt;", ">").replace("&#34;", '"').replace("&amp;", "&")
    )


def test_each_line_stands_alone() -> None:
    lines = highlight(PYTHON, "src/load.py")
    assert [text_of(line) for line in lines] == PYTHON.splitlines()
    for line in lines:
        assert line.count("<span") == line.count("</span>")


def test_few_classes_say_what_is_what() -> None:
    html = "\n".join(highlight(PYTHON, "load.py"))
    assert '<span class="k">import</span> os' in html
    assert (
        '<span class="k">def</span> <span class="f">load</span>(path: <span class="b">str' in html
    )
    assert '<span class="c"># &lt;reads&gt;</span>' in html
    assert '<span class="s">    lines&#34;&#34;&#34;</span>' in html
    assert '<span class="n">0x1F</span>' in html
    assert set(re.findall(r'class="(\w+)"', html)) <= set("kscnfb")


def test_plain_names_and_white_space_have_no_spans() -> None:
    assert highlight("a = b.c\n", "a.py") == ("a = b.c",)
    assert highlight("# a\n# b\n", "a.py") == (
        '<span class="c"># a</span>',
        '<span class="c"># b</span>',
    )


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("Dockerfile", "FROM a", "FROM"),
        ("Makefile", "# a", "c"),
        ("CMakeLists.txt", "# a", "c"),
        ("a.ipynb", "null", "b"),
        ("a.jsonl", "null", "b"),
        ("A.JSON", "null", "b"),
        ("run.R", "# a", "c"),
        ("a.sql", "SELECT 1", "k"),
        ("a.yaml", "a: b", "k"),
        ("a.toml", "a = 1", "n"),
        ("a.cu", "// a", "c"),
    ],
)
def test_the_name_of_the_file_decides_the_language(name: str, text: str, part: str) -> None:
    assert part in highlight(text, f"folder/{name}")[0]
    assert "<span" in highlight(text, name)[0] or name == "Dockerfile"


@pytest.mark.parametrize(
    "name", ["README", "a.txt", "a.log", "a.unknown", "", "a/", "\x00", "." * 300]
)
def test_text_and_unknown_files_stay_plain(name: str) -> None:
    assert highlight("<if> 1\n", name) == ("&lt;if&gt; 1",)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("\n", [""]),
        ("a", ["a"]),
        ("a\n\n", ["a", ""]),
        ("\n\na", ["", "", "a"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\rb", ["a␍b"]),
        ("a\x0bb\x0cc", ["a␋b␌c"]),
        ("\ufeffa", ["a"]),
        ("a\tb", ["a\tb"]),
        ("\x00\x1b[31m\x7f", ["␀␛[31m␡"]),
        ("\ud800", ["\ufffd"]),
        ("a\u2028b\x85c", ["aU+2028bU+0085c"]),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "a.py", "a.md", "a.html"])
def test_lines_are_those_of_git_whatever_is_in_them(text: str, lines: list[str], name: str) -> None:
    assert [text_of(line) for line in highlight(text, name)] == lines


@pytest.mark.parametrize("name", ["a.py", "a.c", "a.txt"])
def test_characters_that_reorder_a_line_are_seen(name: str) -> None:
    line = highlight("/* \u202e } \u2066if (admin)\u2069 */", name)[0]
    assert not re.search(r"[\u202a-\u202e\u2066-\u2069]", line)
    assert '<span class="ctl">U+202E</span>' in line


@pytest.mark.parametrize(
    "text",
    [
        "import os\n" * (code.MAX_LINES + 1),
        "import os\n" + "a" * (code.MAX_LINE_CHARACTERS + 1),
        "import os\n" + ("a" * 4_000 + "\n") * (code.MAX_CHARACTERS // 4_000),
    ],
)
def test_large_files_stay_plain(text: str) -> None:
    lines = highlight(text, "a.py")
    assert lines[0] == "import os"
    assert len(lines) == text.removesuffix("\n").count("\n") + 1


def test_a_lexer_that_fails_or_loses_text_costs_only_the_colours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken:
        def __init__(self, **options: bool) -> None: ...

        def get_tokens(self, text: str) -> list[tuple[tuple[str], str]]:
            if text == "loses":
                return [(("Keyword",), "lose")]
            raise ValueError

    monkeypatch.setattr(code, "_class_for_file_name", lambda name: Broken)
    assert highlight("fails", "a.py") == ("fails",)
    assert highlight("loses", "a.py") == ("loses",)


@pytest.mark.parametrize("language", ["python", "PYTHON", "py", "c++", "console", "json"])
def test_blocks_name_their_language(language: str) -> None:
    assert highlight_language("x", language) == ("x",)


@pytest.mark.parametrize("language", ["", "klingon", "<script>", "x" * 10_000, "\x00"])
def test_unknown_languages_are_text(language: str) -> None:
    assert highlight_language("if 1", language) == ("if 1",)
