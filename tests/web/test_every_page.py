"""What holds for every page, whichever it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from provisioner.accounts.models import User
from provisioner.engine.models import Operation
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.browsers import browser_of
from tests.support.undoing import undone
from tests.support.workspaces import end

TEMPLATES = sorted((settings.BASE_DIR / "templates").rglob("*.html"))

# Everything else needs an account. A new address is closed until it is named here.
OPEN = {
    *("healthz", "readyz", "metrics", "cli", "login/", "admin/login/", "theme/"),
    *("single-sign-on/", "single-sign-on/callback/"),
    *("password/forgotten/", "password/new/<uidb64>/<token>/"),
}
# DRF decides for itself: tests/api has the same sweep for its addresses.
DECIDED_BY_DRF = "api/"


def patterns(
    resolver: URLResolver, *, prefix: str = ""
) -> Iterator[tuple[str, URLPattern]]:
    for entry in resolver.url_patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from patterns(entry, prefix=path)
        else:
            yield path, entry


def addresses() -> list[tuple[str, URLPattern]]:
    return [
        (path, pattern)
        for path, pattern in patterns(get_resolver())
        if not path.startswith(DECIDED_BY_DRF)
    ]


def filled_in(path: str) -> str:
    """Return an address of the pattern; its numbers name nothing."""
    path = re.sub(r"<(?:int:|slug:)?\w+>", "7", path)
    path = re.sub(r"\(\?P<\w+>.*?\)", "7", path)
    return "/" + re.sub(r"<path:\w+>", "7", path).replace("^", "").replace("$", "")


def test_every_address_needs_a_login_except_the_named(as_nobody: Client) -> None:
    open_to_nobody = set()
    for path, _ in addresses():
        answer = as_nobody.get(filled_in(path))
        if answer.status_code != 302 or "/login/" not in answer["Location"]:
            open_to_nobody.add(path)
    assert open_to_nobody == OPEN


def test_no_cache_keeps_what_is_personal(admin: User) -> None:
    signed_in = browser_of(admin).cookies
    kept = []
    browser = Client()
    for path, _ in patterns(get_resolver()):
        browser.cookies = deepcopy(signed_in)
        with undone():
            answer = browser.get(filled_in(path))
        if not {"private", "no-store"} <= set(answer["Cache-Control"].split(", ")):
            kept.append(path)
    assert kept == []


def test_the_sweep_sees_all_pages() -> None:
    names = {pattern.name for _, pattern in addresses()}
    assert {"workspace-list", "template-build", "operation-log", "index"} <= names
    assert login_not_required is not None


def test_no_page_has_script_or_style_of_its_own() -> None:
    for file in TEMPLATES:
        source = file.read_text()
        own = r"<style|\sstyle=|\son\w+=|javascript:|hx-on"
        assert not re.search(own, source), file
        for script in re.findall(r"<script[^>]*>", source):
            assert "src=" in script, file
        assert not re.search(r'(src|href)="(https?:)?//', source), f"no CDN: {file}"


def test_templates_leave_decisions_to_views() -> None:
    compares = re.compile(r"\{% (?:el)?if [^%]*(?:==|!=| in | and | or )")
    assert [str(file) for file in TEMPLATES if compares.search(file.read_text())] == []


def test_pages_have_a_strict_content_policy(as_alice: Client) -> None:
    policy = as_alice.get("/")["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_an_unknown_address_is_a_designed_page(as_alice: Client) -> None:
    answer = as_alice.get("/workspaces/999999/")
    assert answer.status_code == 404
    assert "There is nothing here" in answer.text


def test_a_form_without_its_token_is_a_designed_page(as_alice: Client) -> None:
    browser = Client(enforce_csrf_checks=True)
    answer = browser.post("/login/", {"username": "alice"})
    assert answer.status_code == 403
    assert "This form has expired" in answer.text


def test_our_mistake_is_a_designed_page(rf: object) -> None:
    from django.test import RequestFactory
    from django.views.defaults import server_error

    answer = server_error(RequestFactory().get("/"))
    assert answer.status_code == 500
    assert "Something broke in Cloneyard" in answer.content.decode()


def test_pages_show_control_characters_of_others_as_pictures(
    as_alice: Client, ready: Workspace, alice: User
) -> None:
    steers = "a\x1b]0;title\x07\x9b31m\u202etxt.exe"
    path = {"action": "add", "depot_file": "", "path": f"/mnt/w/{steers}"}
    end(
        workspace_retire(by=alice, workspace=ready),
        Operation.State.REFUSED,
        code="unsubmitted_work",
        message=f"Look at {steers}.",
        findings={"untracked": [path]},
    )
    ready.refresh_from_db()
    set_workspace_state(ready, Workspace.State.READY)

    answer = as_alice.get(f"/workspaces/{ready.pk}/retire/")

    assert "/mnt/w/a␛]0;title␇" in answer.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", answer.text)
    assert int(answer["Content-Length"]) == len(answer.content)
