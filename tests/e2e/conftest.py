"""A browser, a web server and a worker: the parts of a person's journey."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection, connections
from playwright.sync_api import Browser, ConsoleMessage, Page
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from provisioner.accounts.models import User
from provisioner.demo.chromium import find_chromium, running_chromium
from provisioner.demo.processes import Child, manage
from tests.e2e.furnished import Furnished
from tests.support.chromium import SETTLED_WITHIN_MS, SignIn
from tests.support.client_library import LIBRARY
from tests.support.factories import PASSWORD
from tests.support.forkserver import Warm, warm
from tests.support.lab import Lab

__all__ = ["LIBRARY"]  # made before test modules are read, which import it


@pytest.fixture(scope="session")
def warm_worker(django_db_setup: None, lab: Lab) -> Iterator[Warm]:
    with warm(
        {
            "DATABASE_NAME": connection.settings_dict["NAME"],
            "ONTAP_PASSWORD": lab.ontap["password"],
            "P4PASSWD": lab.perforce["password"],
            "LOG_DIR": str(lab.root / "logs"),
        }
    ) as warm_worker:
        yield warm_worker


@pytest.fixture
def worker(warm_worker: Warm, jobs_emptied: None, tmp_path: Path) -> Iterator[Child]:
    """A worker in a process of its own, as in production."""
    child = Child("worker", manage("worker"), log_dir=tmp_path, start=warm_worker)
    yield child
    child.stop()


@pytest.fixture
def chromium() -> Iterator[Browser]:
    """The system's Chromium.

    One per test: Playwright keeps an event loop in the test's thread, and other
    fixtures want to run theirs there.
    """
    if find_chromium() is None:
        pytest.skip("There is no Chromium on this machine.")
    with running_chromium() as browser:
        yield browser
        # Where a loop runs, Django keeps connections apart from the thread's own.
        connections.close_all()


@pytest.fixture
def furnished(transactional_db: None, settings: Settings, tmp_path: Path) -> Furnished:
    """Something of everything, without a lab and a worker."""
    settings.LOG_DIR = tmp_path
    return Furnished()


# What htmx says of a check for news when the page is left before the answer is there.
BROKEN_OFF = ("htmx:sendAbort,", "htmx:afterRequest,")


@pytest.fixture
def sign_in(chromium: Browser, live_server: LiveServer) -> Iterator[SignIn]:
    """Sign a person in with a browser of their own; complaints fail the test."""
    complaints: list[str] = []

    def complain(text: str) -> None:
        complaints.append(text)

    def hear(said: ConsoleMessage) -> None:
        # A page that is refused is an answer; what a page loads has to be there.
        is_page = said.page is not None and said.location["url"] == said.page.url
        if said.type != "error" or said.text.startswith(BROKEN_OFF):
            return
        if not (is_page and said.text.startswith("Failed to load resource")):
            complain(f"{said.text} ({said.location['url']})")

    def sign_in(user: User, *, scripts: bool = True) -> Page:
        context = chromium.new_context(
            base_url=live_server.url, java_script_enabled=scripts
        )
        context.set_default_timeout(SETTLED_WITHIN_MS)
        page = context.new_page()
        page.on("pageerror", lambda error: complain(str(error)))
        page.on("console", hear)
        page.goto("/")
        page.get_by_label("Username").fill(user.username)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        return page

    yield sign_in
    assert complaints == []
