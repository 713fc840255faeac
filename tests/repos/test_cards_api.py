"""The metadata at the top of README.md."""

import httpx2
import pytest

from hublet.repos import card_rules
from hublet.repos.cards import parse_metadata, tags_of
from hublet.repos.errors import InvalidCard
from hublet.repos.records import RepoType

EMPTY = "There is no metadata at the top of README.md; it helps others to find the repository."


def card(text: str) -> str:
    return f"---\n{text}\n---\n# Title\n"


async def test_good_metadata_is_good(client: httpx2.AsyncClient) -> None:
    response = await client.post(
        "/api/validate-yaml", json={"content": card("license: mit"), "repoType": "model"}
    )

    assert (response.status_code, response.json()) == (200, {"errors": [], "warnings": []})


@pytest.mark.parametrize(
    "content", ["# Title", "", card(""), card("# nothing"), "---\nlicense: mit"]
)
async def test_no_metadata_is_worth_a_warning(client: httpx2.AsyncClient, content: str) -> None:
    response = await client.post("/api/validate-yaml", json={"content": content})

    assert (response.status_code, response.json()) == (
        200,
        {"errors": [], "warnings": [{"message": EMPTY}]},
    )


async def test_each_problem_is_told(client: httpx2.AsyncClient) -> None:
    response = await client.post(
        "/api/validate-yaml",
        json={"content": card("license: {a: b}\npipeline_tag: [x]"), "repoType": "space"},
    )

    first = '"pipeline_tag" must be a string.'
    second = '"license" must be a string or a list of strings.'
    assert (response.status_code, response.json()) == (
        400,
        {
            "error": f"The metadata in README.md is not valid: {first} {second}",
            "errors": [{"message": first}, {"message": second}],
            "warnings": [],
        },
    )


INDEX = "model-index:\n- name: a\n  results:\n  - "
LICENSES = ", ".join(sorted(card_rules.LICENSES))


@pytest.mark.parametrize(
    ("type_", "text", "errors"),
    [
        ("model", "license: asdf", [f'"license" must be one of [{LICENSES}]; for another one, write "other" and "license_name".']),
        ("model", "base_model: [a/b, a b]", ['"base_model[1]" must be the name of a model, as in ada/engine.']),
        ("model", "model-index: foo", ['"model-index" must be an array.']),
        ("model", "model-index: [foo]", ['"model-index[0]" must be an object.']),
        ("model", "model-index: [{}]", ['"model-index[0].name" is required.', '"model-index[0].results" is required.']),
        ("model", INDEX + "{}", ['"model-index[0].results[0].task" is required.', '"model-index[0].results[0].metrics" is required.']),
        ("model", INDEX + "{task: {type: x}, dataset: {name: d}, metrics: []}", ['"model-index[0].results[0].dataset.type" is required.']),
        ("model", INDEX + "{task: x, metrics: [{type: f1}]}", ['"model-index[0].results[0].task" must be an object.', '"model-index[0].results[0].metrics[0].value" is required.']),
        ("space", "sdk: cobol\ncolorFrom: beige", ['"sdk" must be one of [gradio, streamlit, docker, static].', '"colorFrom" must be one of [red, yellow, green, blue, indigo, purple, pink, gray].']),
        ("space", "emoji: 1\npinned: [perhaps]", ['"emoji" must be a string.', '"pinned" must be true or false.']),
        ("space", "short_description: " + "x" * 61, ['"short_description" must have at most 60 characters.']),
    ],
)  # fmt: skip
async def test_a_field_that_breaks_its_rule_is_named(
    client: httpx2.AsyncClient, type_: str, text: str, errors: list[str]
) -> None:
    body = {"content": card(text), "repoType": type_}

    response = await client.post("/api/validate-yaml", json=body)
    plain = await client.post("/api/validate-yaml", json=body, headers={"Accept": "text/plain"})

    assert (response.status_code, plain.status_code) == (400, 400)
    assert response.json()["errors"] == [{"message": error} for error in errors]
    assert plain.text == "".join(f"- Error: {error}\n" for error in errors)


async def test_what_nobody_will_find_is_worth_a_warning(client: httpx2.AsyncClient) -> None:
    content = card("language: [en, English, zh-Hans]\npipeline_tag: Magic!\ndatasets: a b c")

    response = await client.post("/api/validate-yaml", json={"content": content})

    assert response.status_code == 200
    assert [each["message"].split(";")[0] for each in response.json()["warnings"]] == [
        '"language[1]" is no code of a language (ISO 639), such as en',
        '"pipeline_tag" is no task, such as text-generation',
        '"datasets" is no name of a dataset, such as ada/words',
    ]


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("model", "license: [mit, apache-2.0]\nbase_model: ada/engine\ntags: [a]"),
        ("model", INDEX + "{task: {type: x}, dataset: {type: d, name: D}, metrics: [{type: f1, value: 0}]}"),
        ("dataset", "license: other\nlicense_name: ours\nsize_categories: [n<1K]"),
        ("space", "title: A\nemoji: 🚀\nsdk: gradio\ncolorFrom: red\ncolorTo: gray\npinned: false"),
    ],
)  # fmt: skip
async def test_good_cards_of_each_type_pass(
    client: httpx2.AsyncClient, type_: str, text: str
) -> None:
    response = await client.post(
        "/api/validate-yaml", json={"content": card(text), "repoType": type_}
    )

    assert (response.status_code, response.json()) == (200, {"errors": [], "warnings": []})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "tags: [", "It is no YAML: did not find expected node content in line 3 of README.md.",
            id="broken",
        ),
        pytest.param(
            "a: b: c",
            "It is no YAML: mapping values are not allowed in this context in line 2 of README.md.",
            id="two colons",
        ),
        pytest.param("- a", "It must be a list of names with values.", id="a list"),
        pytest.param(
            "a: &x [b]\nc: *x", "It must not use aliases (*name) in line 3 of README.md.", id="an alias",
        ),
        pytest.param("a: 1\na: 2", 'The name "a" is there twice in line 3 of README.md.', id="twice"),
        pytest.param("a: " + "x" * (1 << 20), "It has more than 1048576 bytes.", id="length"),
    ],
)  # fmt: skip
def test_bad_metadata_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidCard) as refused:
        parse_metadata(card(text))

    assert refused.value.problems == (problem,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: 2024-01-31", {"a": "2024-01-31"}, id="a day"),
        pytest.param("a: .nan\nb: 1.5", {"a": "nan", "b": 1.5}, id="numbers"),
        pytest.param("2: x\ntrue: y", {"2": "x", "true": "y"}, id="names that are no text"),
        pytest.param("a: ~\nb: true", {"a": None, "b": True}, id="nothing, and truth"),
        pytest.param("language: no", {"language": "no"}, id="Norwegian"),
    ],
)
def test_metadata_is_plain_json(text: str, expected: dict[str, object]) -> None:
    assert parse_metadata(card(text)) == expected


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("\ufeff---\na: b\n---\n", id="a mark of the byte order"),
        pytest.param("\n\n---  \na: b\n---", id="blanks around"),
        pytest.param("---\r\na: b\r\n---\r\n", id="lines of Windows"),
    ],
)
def test_metadata_is_found_as_editors_leave_it(content: str) -> None:
    assert parse_metadata(content) == {"a": "b"}


def test_the_tags_of_a_model() -> None:
    data = {
        "library_name": "torch",
        "pipeline_tag": "text-generation",
        "tags": ["small", "small", " ", 5, "x" * 201],
        "language": "en",
        "datasets": ["ada/words"],
        "base_model": "ada/bigger",
        "license": "mit",
    }

    assert tags_of(data, RepoType.model) == (
        "torch", "text-generation", "small", "en", "dataset:ada/words", "base_model:ada/bigger",
        "license:mit",
    )  # fmt: skip


def test_the_tags_of_a_dataset() -> None:
    data = {
        "task_categories": ["translation"],
        "language": ["en"],
        "license": "mit",
        "size_categories": "n<1K",
        "tags": ["small"],
    }

    assert tags_of(data, RepoType.dataset) == (
        "task_categories:translation", "language:en", "license:mit", "size_categories:n<1K",
        "small",
    )  # fmt: skip
    assert tags_of(None, RepoType.dataset) == ()


async def test_more_metadata_than_is_read_is_worth_a_warning(client: httpx2.AsyncClient) -> None:
    content = card("\n".join(f"name{number}: value" for number in range(3000)))

    response = await client.post("/api/validate-yaml", json={"content": content})

    assert response.status_code == 200
    [warning] = response.json()["warnings"]
    assert "names and values" in warning["message"]
    assert warning["message"].endswith("The hub reads none of it.")
