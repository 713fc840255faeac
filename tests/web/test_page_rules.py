"""Rules that every template and every page keeps: no inline code, names for controls, small scripts."""

import gzip
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

import hublet
from processes import Place
from web.page_inventory import PAGES, SeededHub, seeded_hub
from web.parsed_pages import HTML, Element, parse

SOURCE = Path(hublet.__file__).parent
# Mails have no style sheet.
TEMPLATES = {
    path.relative_to(SOURCE).as_posix(): path.read_text()
    for path in sorted(SOURCE.rglob("templates/**/*.html"))
    if "mail" not in path.parts
}
_EXPRESSION = re.compile(r"{[{%#].*?[}%#]}", re.DOTALL)
# What the policy of the pages would stop, and what would let text of others in as HTML.
_INLINE = re.compile(r"<[^>]*?\s(?:style|on[a-z]+)=[^>]*|<style|<script(?![^>]*\ssrc=)")
_TRUST = re.compile(r"\|\s*safe\b|autoescape")
# Nobody is signed in yet, or nothing of the person's is changed: these look at the origin alone.
_WITHOUT_TOKEN = {
    "/login",
    "/login/passkey",
    "/settings/theme",
    "/join",
    "/forgot-password",
    "/reset-password/{{ token }}",
    "/invitations/{{ token }}/join",
}

MOST_SCRIPT = 8_000
MOST_ON_A_FIRST_VISIT = 100_000
# It takes seconds to render, and has tests of its own.
REFERENCE = "/docs"


def test_no_template_has_code_inside_or_trusts_a_text() -> None:
    inline = {name: _INLINE.findall(_EXPRESSION.sub("", text)) for name, text in TEMPLATES.items()}
    trusting = {name: _TRUST.findall(text) for name, text in TEMPLATES.items()}

    assert {name: found for name, found in trusting.items() if found} == {}
    assert {name: found for name, found in inline.items() if found} == {}


def test_every_form_that_changes_something_has_its_token() -> None:
    without = [
        f"{name}: {form[:120]}"
        for name, text in TEMPLATES.items()
        for form in re.findall(r'<form[^>]*method="post".*?</form>', text, re.DOTALL)
        if not re.search(r"form_token|ui\.token\(form\.token\)", form)
        and not _WITHOUT_TOKEN & set(re.findall(r'action="(.*?)"', form))
    ]
    assert without == []


def test_a_component_is_one_macro_and_pages_define_none() -> None:
    names = [each for text in TEMPLATES.values() for each in re.findall(r"{% macro (\w+)", text)]
    pages = [
        name for name, text in TEMPLATES.items() if "{% extends" in text and "{% macro" in text
    ]

    assert [name for name, count in Counter(names).items() if count > 1] == []
    assert pages == []


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeededHub]:
    with seeded_hub(Place(folder=tmp_path_factory.mktemp("pages"))) as hub:
        yield hub


@pytest.fixture(scope="module")
def pages(hub: SeededHub) -> dict[str, httpx2.Response]:
    """Every page of the table, as a browser gets it."""
    answers = {}
    for who, cookies in hub.cookies.items():
        with httpx2.Client(headers=HTML, cookies=dict(cookies)) as client:
            for case in PAGES:
                if case.who == who and case.path != REFERENCE:
                    answers[case.name] = client.get(hub.url_of(case))
    assert {case.name: case.status for case in PAGES if case.path != REFERENCE} == {
        name: answer.status_code for name, answer in answers.items()
    }
    return answers


def faults_of(page: Element) -> list[str]:
    labels = page.all("label")
    named = {id(each) for label in labels for each in label.all("input")}
    targets = {label.attributes.get("for") for label in labels}
    ids = Counter(_ids_of(page))
    return [
        *(f"{count} elements are called {name}" for name, count in ids.items() if count > 1),
        *(f"no alt: {each.attributes}" for each in page.all("img") if "alt" not in each.attributes),
        *(
            f"a {tag} without a name: {each.attributes}"
            for tag in ("input", "select", "textarea", "button")
            for each in page.all(tag)
            if not (
                _needs_no_label(each) or id(each) in named or each.attributes.get("id") in targets
            )
        ),
    ]


def _needs_no_label(control: Element) -> bool:
    attributes = control.attributes
    is_hidden = attributes.get("type") == "hidden" or "hidden" in attributes
    return (
        is_hidden or "aria-label" in attributes or (control.tag == "button" and bool(control.text))
    )


def _ids_of(element: Element) -> Iterator[str]:
    if name := element.attributes.get("id"):
        yield name
    for child in element.children:
        yield from _ids_of(child)


def test_every_control_has_a_name_every_picture_a_text_and_no_id_stands_twice(
    pages: dict[str, httpx2.Response],
) -> None:
    found = {name: faults_of(parse(page)) for name, page in pages.items()}

    assert {name: faults for name, faults in found.items() if faults} == {}


def test_pages_and_what_they_load_are_small(
    hub: SeededHub, pages: dict[str, httpx2.Response]
) -> None:
    sizes: dict[str, int] = {}
    heavy = {}
    for name, page in pages.items():
        root = parse(page)
        scripts = {each.attributes["src"] for each in root.all("script")}
        files = scripts | {each.attributes["href"] for each in root.all("link", rel="stylesheet")}
        files |= {each.attributes["href"].partition("#")[0] for each in root.all("use")}
        for path in files - set(sizes):
            sizes[path] = len(gzip.compress(httpx2.get(hub.address + path).content, 9))
        script = sum(sizes[path] for path in scripts)
        whole = len(gzip.compress(page.content, 5)) + sum(sizes[path] for path in files)
        if script > MOST_SCRIPT or whole > MOST_ON_A_FIRST_VISIT:
            heavy[name] = (script, whole)

    assert heavy == {}
