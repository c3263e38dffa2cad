"""A person's way from signing in to giving a workspace back."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.demo import depot
from provisioner.demo.processes import Child
from provisioner.workspaces.models import Workspace
from tests.support.chromium import SETTLED_WITHIN_MS, SignIn
from tests.support.factories import UserFactory
from tests.support.lab import Lab

pytestmark = [
    pytest.mark.browser,
    pytest.mark.integration,
    pytest.mark.django_db(transaction=True),
]

expect.set_options(timeout=SETTLED_WITHIN_MS)


def expect_state(page: Page, word: str) -> None:
    expect(page.locator("h1 + .state")).to_have_text(word)


def build(page: Page, template: Template) -> None:
    """Build the template as its administrator does, and wait for the snapshot."""
    page.get_by_role("link", name="Templates", exact=True).click()
    page.get_by_role("link", name=template.name, exact=True).click()
    page.get_by_role("button", name="Build the newest change").click()
    expect_state(page, "Ready")


def get_workspace(page: Page) -> Workspace:
    """Click the one button, and wait for what it promises."""
    page.get_by_role("button", name="Get a workspace").click()
    expect_state(page, "Ready")
    return Workspace.objects.latest("created_at")


def retire(page: Page) -> None:
    page.get_by_role("link", name="Retire", exact=True).click()
    page.get_by_role("button", name="Retire").click()


def test_from_a_template_to_a_workspace_and_back(
    sign_in: SignIn, lab_template: Template, worker: Child, alice: User, admin: User
) -> None:
    # The administrator builds the template and reads the log.
    page = sign_in(admin)
    build(page, lab_template)
    expect(page.get_by_text("Default", exact=True)).to_be_visible()
    builds = page.get_by_role("region", name="Builds", exact=True)
    builds.get_by_role("link", name="Log", exact=True).click()
    expect(page.get_by_label("What the step printed")).to_contain_text("built")
    page.get_by_label("Search the log").fill("BUILT")
    page.get_by_role("button", name="Search the log").click()
    page.get_by_role("link", name="built").click()
    expect(page.get_by_label("What the step printed")).to_contain_text("built")

    # Alice gets a workspace, and sees it become ready without reloading anything.
    page = sign_in(alice)
    expect(page.get_by_text("You have no workspace yet")).to_be_visible()
    page.get_by_role("button", name="Get a workspace").click()
    page.evaluate("window.isStillTheSamePage = true")
    expect_state(page, "Ready")
    assert page.evaluate("window.isStillTheSamePage")
    workspace = Workspace.objects.get()
    expect(page.get_by_text(f"cd {workspace.path}")).to_be_visible()
    pin = workspace.snapshot
    expect(page.get_by_text(f"{pin.have_count} files, digest")).to_be_visible()
    assert (workspace.path / "src" / "file1.txt").is_file()
    assert (workspace.path / "out" / "all").is_file()

    # A few letters lead anywhere; whoever presses Enter at once means what they typed.
    page.keyboard.press("Control+k")
    page.keyboard.type("history")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="History")).to_be_visible()
    page.get_by_role("link", name="Command palette").click()
    marked = page.get_by_role("dialog").get_by_role("option", selected=True)
    expect(marked).to_contain_text(workspace.template.name)
    page.keyboard.press("ArrowDown")
    expect(marked).to_contain_text(workspace.name)
    page.keyboard.press("Enter")
    expect_state(page, "Ready")

    # She leaves something behind, so that it is not taken back unasked.
    Path(workspace.path / "notes.txt").write_text("Do not lose me.\n")
    retire(page)
    expect(page.get_by_text("It was not retired")).to_be_visible()
    page.get_by_role("link", name="Choose what happens to it").click()
    expect(page.get_by_text("notes.txt")).to_be_visible()
    expect(page.get_by_label("Rescue what is listed here")).to_be_checked()
    page.get_by_role("button", name="Retire").click()
    expect_state(page, "In the trash")
    assert not workspace.path.exists()
    expect(page.get_by_text("1 file (16 B) archived")).to_be_visible()

    # She finds it in the trash, and has it back with one click.
    page.get_by_role("link", name="My workspaces").first.click()
    expect(page.get_by_text("You have no workspace yet")).to_be_visible()
    page.get_by_role("link", name="Trash").click()
    page.get_by_role("button", name="Restore :").click()
    expect_state(page, "Ready")
    assert (workspace.path / "notes.txt").read_text() == "Do not lose me.\n"

    # Then it is purged.
    (workspace.path / "notes.txt").unlink()
    retire(page)
    expect_state(page, "In the trash")
    page.get_by_role("link", name="Purge now").click()
    page.get_by_role("button", name="Purge").click()
    expect_state(page, "Retired")


def test_the_same_without_scripts(
    sign_in: SignIn, lab_template: Template, worker: Child, alice: User, admin: User
) -> None:
    build(sign_in(admin, scripts=False), lab_template)
    page = sign_in(alice, scripts=False)
    workspace = get_workspace(page)
    expect(page.get_by_text(f"cd {workspace.path}")).to_be_visible()
    expect(page.locator("button.copy:visible")).to_have_count(0)
    page.get_by_role("link", name="Extend by…").click()
    page.get_by_label("New lease length").fill("50 days")
    page.get_by_role("button", name="Extend", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("The lease of")
    retire(page)
    expect_state(page, "In the trash")
    assert not workspace.path.exists()
    page.get_by_role("button", name="Restore").click()
    expect_state(page, "Ready")
    assert (workspace.path / "out" / "all").is_file()


def test_a_failure_is_explained_and_tried_again(
    sign_in: SignIn, lab_template: Template, worker: Child, admin: User, lab: Lab
) -> None:
    build(sign_in(admin), lab_template)
    dave = UserFactory.create(username="dave")
    page = sign_in(dave)
    page.get_by_role("button", name="Get a workspace").click()
    expect_state(page, "Failed")
    expect(page.get_by_role("alert")).to_contain_text(
        "Perforce does not know the user dave"
    )

    p4 = lab.as_admin()
    try:
        depot.create_p4_user(p4, user="dave", password="lab-password")
    finally:
        p4.disconnect()
    page.get_by_role("button", name="Retry").click()
    expect_state(page, "Ready")
    retire(page)
    expect_state(page, "In the trash")
