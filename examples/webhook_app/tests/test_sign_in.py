"""People sign in with their account on the hub."""

import json
from urllib.parse import urlsplit

import httpx2

from conftest import App
from hublet.testing import Hub, User


def test_a_person_signs_in_and_is_known(hub: Hub, app: App, ada: User) -> None:
    browser = hub.browser(ada)
    assert json.loads(browser.visit(app.url).text) == {"user": None}

    page = browser.allow(f"{app.url}/login")

    assert page.url == f"{app.url}/"
    assert json.loads(page.text) == {"user": "ada"}
    # The session stays, as long as the browser does.
    assert json.loads(browser.visit(app.url).text) == {"user": "ada"}
    assert json.loads(hub.browser(ada).visit(app.url).text) == {"user": None}


def test_a_sign_in_that_another_browser_began_is_refused(hub: Hub, app: App, ada: User) -> None:
    begun = httpx2.get(f"{app.url}/login", follow_redirects=False)
    browser = hub.browser(ada)

    page = browser.allow(begun.headers["location"])

    assert (urlsplit(page.url).path, page.status) == ("/callback", 400)
    assert json.loads(browser.visit(app.url).text) == {"user": None}


def test_an_answer_that_nobody_asked_for_is_refused(hub: Hub, app: App, ada: User) -> None:
    page = hub.browser(ada).visit(f"{app.url}/callback?code=stolen&state=unknown")

    assert page.status == 400
