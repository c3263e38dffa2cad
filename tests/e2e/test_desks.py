"""What people do at their desks with what is there, with scripts and without."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect
from rest_framework.test import APIClient

from provisioner.catalog.models import Template
from provisioner.workspaces.models import Workspace
from tests.e2e.furnished import Furnished
from tests.support.chromium import SETTLED_WITHIN_MS, SignIn

pytestmark = [
    pytest.mark.browser,
    pytest.mark.integration,
    pytest.mark.django_db(transaction=True),
]

expect.set_options(timeout=SETTLED_WITHIN_MS)

MOST_TABS = 80


def states_of(*workspaces: Workspace) -> list[str]:
    found = Workspace.objects.in_bulk([one.pk for one in workspaces])
    return [found[one.pk].state for one in workspaces]


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


@pytest.mark.timeout(600)  # on a machine that is busy
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_people_do_their_work(
    sign_in: SignIn, furnished: Furnished, scripts: bool
) -> None:
    page = sign_in(furnished.admin, scripts=scripts)
    reclaim(page, furnished.forgotten)
    extend(page, furnished.extendable, scripts=scripts)
    look_into_a_chart(page, scripts=scripts)
    choose_from_a_menu(page, furnished.template)
    set_a_quota(page)
    make_a_token(sign_in(furnished.alice, scripts=scripts))


def test_people_do_their_work_by_keyboard(
    sign_in: SignIn, furnished: Furnished
) -> None:
    page = sign_in(furnished.alice)
    state = page.locator("h1 + .state")
    enter(page, page.get_by_role("link", name="Get a workspace"))
    enter(page, page.get_by_role("button", name=f"of {furnished.template.name}"))
    expect(state).to_have_text("Being created")

    page.wait_for_load_state()  # until then no script hears a key
    page.keyboard.press("Control+k")
    page.keyboard.type(furnished.workspace.name)
    named = page.get_by_role("dialog").get_by_role("option", selected=True)
    expect(named).to_contain_text(furnished.workspace.name)
    page.keyboard.press("Enter")
    expect(state).to_have_text("Ready")
    enter(page, page.get_by_role("link", name="Extend by…"))
    reach(page, page.get_by_label("New lease length"))
    page.keyboard.type("50 days")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("lease")
    enter(page, page.get_by_role("link", name="Retire", exact=True))
    enter(page, page.get_by_role("button", name=f"Retire {furnished.workspace.name}"))
    expect(state).to_have_text("Being retired")

    enter(page, page.get_by_role("link", name="Trash", exact=True))
    enter(page, page.get_by_role("button", name="Restore :"))
    expect(state).to_have_text("Being restored")

    enter(page, page.get_by_role("link", name="My workspaces", exact=True).first)
    reach(page, page.get_by_label(f"Choose {furnished.old.name}", exact=True))
    page.keyboard.press("Space")
    enter(page, page.get_by_role("button", name="Retire…", exact=True))
    expect(page.get_by_role("heading", name="Retire 1 workspace?")).to_be_visible()


def enter(page: Page, target: Locator) -> None:
    reach(page, target)
    page.keyboard.press("Enter")


def reach(page: Page, target: Locator) -> None:
    """Press Tab until the focus is there, as often as a page may ask for at most."""
    for _ in range(MOST_TABS):
        if target.evaluate("it => it === document.activeElement"):
            return
        page.keyboard.press("Tab")
    expect(target).to_be_focused()


def look_into_a_chart(page: Page, *, scripts: bool) -> None:
    """A day is read, and its operations opened, by keyboard; without scripts from
    the table."""
    page.goto("/overview/?range=week&compare=on")
    section = page.get_by_role("region", name="Operations that failed").first
    newest = section.locator("tbody tr").first
    label = newest.locator("th").text_content() or ""
    if scripts:
        expect(section.locator("svg")).to_be_hidden()
        section.locator(".chart-canvas").focus()
        page.keyboard.press("ArrowLeft")
        expect(section.get_by_role("status")).to_contain_text(f"{label}. Failed: ")
        page.keyboard.press("Enter")
    else:
        expect(section.locator("svg")).to_be_visible()
        newest.get_by_role("link").click()
    expect(page.get_by_role("heading", name="Operations", exact=True)).to_be_visible()
    assert "state=failed&since=" in page.url


def choose_from_a_menu(page: Page, template: Template) -> None:
    """A menu opens and closes by keyboard, and what is in it is next."""
    page.goto(f"/templates/{template.pk}/")
    more = page.get_by_role("button", name="More actions")
    rename = page.get_by_role("link", name="Rename", exact=True)
    expect(rename).to_be_hidden()
    enter(page, more)
    expect(rename).to_be_visible()
    page.keyboard.press("Escape")
    expect(rename).to_be_hidden()
    expect(more).to_be_focused()
    page.keyboard.press("Enter")
    enter(page, rename)
    expect(
        page.get_by_role("heading", name=f"Rename {template.heading}")
    ).to_be_visible()


def reclaim(page: Page, forgotten: Workspace) -> None:
    """What nobody uses is shown with why, and goes after a preview."""
    page.get_by_role("link", name="Workspaces", exact=True).click()
    quick = page.get_by_role("navigation", name="Quick filters")
    quick.get_by_role("link", name="Abandoned", exact=True).click()
    expect(page.get_by_text("No work shows for 41 days")).to_be_visible()
    page.get_by_label(f"Choose {forgotten.name}", exact=True).check()
    press(page, "Retire…")
    expect(page.get_by_role("heading", name="Retire 1 workspace?")).to_be_visible()
    assert states_of(forgotten) == ["ready"], "a preview changes nothing"
    press(page, "Retire 1 workspace")
    expect(page.locator(".tally-line")).to_contain_text("0 of 1 are in the trash")
    assert states_of(forgotten) == ["retiring"]


def extend(page: Page, chosen: list[Workspace], *, scripts: bool) -> None:
    """Some are found by words, and all of them get more time, after a preview."""
    ends = {one.pk: one.expires_at for one in chosen if one.expires_at is not None}
    assert len(ends) == len(chosen)
    page.get_by_role("link", name="All workspaces", exact=True).click()
    page.get_by_label("Name or owner").fill("old alice")
    if scripts:
        expect(page.get_by_role("button", name="Show", exact=True)).to_have_count(0)
    else:
        press(page, "Show")
    expect(page.locator(".tally-line")).to_contain_text("2 workspaces")
    for one in chosen:
        page.get_by_label(f"Choose {one.name}", exact=True).check()
    press(page, "Extend…")
    effect, show = page.locator("#effect"), "Show what happens"
    page.get_by_label("New lease length").fill("soon")
    press(page, "Extend 2 workspaces")
    expect(page.locator(".errorlist")).to_have_count(1)
    before = effect.text_content() or ""
    page.get_by_label("New lease length").fill("60 d")
    if page.get_by_role("button", name=show).is_visible():
        press(page, show)
    expect(effect).not_to_have_text(before)
    expect(page.locator(".errorlist")).to_have_count(0)
    press(page, "Extend 2 workspaces")
    expect(page.get_by_role("status")).to_contain_text("2 workspaces")
    for one in Workspace.objects.filter(pk__in=ends):
        assert one.expires_at is not None
        assert one.expires_at > ends[one.pk]
    assert "?q=old+alice&" in page.url, "the list is as it was left"


def set_a_quota(page: Page) -> None:
    """A limit is asked for once it is wanted."""
    page.goto("/people/?q=alice")
    page.get_by_label("Choose alice", exact=True).check()
    press(page, "Set quota…")
    number = page.get_by_label("Number of workspaces")
    expect(number).to_be_hidden()
    page.get_by_label("Workspaces at a time").select_option("Limit to")
    expect(page.get_by_label("Size")).to_be_hidden()
    number.fill("300")
    press(page, "Set quota for 1 account")
    expect(page.get_by_role("status")).to_contain_text("Changed: 1 account.")


def make_a_token(page: Page) -> None:
    """A token for CI opens what it was made for, until it is revoked."""
    page.goto("/tokens/")
    page.get_by_label("What is it for?").fill("compile farm")
    page.get_by_label("For how many days").fill("7")
    page.get_by_label("engine-main").check()
    page.get_by_label("CI (read-only client)").check()
    press(page, "Create a token")

    shown = page.get_by_role("status").locator("code")
    expect(shown).to_be_visible()
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {shown.inner_text()}")
    asked = {"template": "engine-main", "name": "compiled"}
    refused = client.post("/api/v1/workspaces", asked, format="json")
    assert refused.status_code == 403, "it was made for CI alone"
    asked["purpose"] = "ci"
    assert client.post("/api/v1/workspaces", asked, format="json").status_code == 202

    page.get_by_role("row", name="compile farm").get_by_role("button").click()
    expect(page.get_by_role("row", name="compile farm")).to_have_count(0)
    assert client.get("/api/v1/workspaces").status_code == 401
