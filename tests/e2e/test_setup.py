"""An administrator's way from an empty installation to its first workspace."""

from __future__ import annotations

import os
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from provisioner.accounts.models import User
from provisioner.demo.processes import Child
from provisioner.workspaces.models import Workspace
from tests.support.chromium import SETTLED_WITHIN_MS, SignIn
from tests.support.lab import DEPOT, Lab

pytestmark = [
    pytest.mark.browser,
    pytest.mark.integration,
    pytest.mark.django_db(transaction=True),
]

expect.set_options(timeout=SETTLED_WITHIN_MS)


def fill(page: Page, fields: dict[str, object]) -> None:
    for label, value in fields.items():
        page.get_by_label(label, exact=True).fill(str(value))


def expect_next(page: Page, title: str) -> None:
    """Wait until setup says that this is to be done now."""
    expect(page.locator("[aria-current=step] h3")).to_contain_text(title)


def test_the_setup_leads_to_the_first_workspace(
    sign_in: SignIn, lab: Lab, worker: Child, admin: User, settings: Any
) -> None:
    lab.break_ontap()
    lab.break_perforce()
    secrets = {
        "ONTAP_PASSWORD": lab.ontap["password"],
        "P4PASSWD": lab.perforce["password"],
    }
    settings.SITE_SECRET = lambda name, *, key: secrets[name]
    page = sign_in(admin)

    expect_next(page, "Connect Perforce")
    page.get_by_role("link", name="Connect Perforce").click()
    port = lab.perforce["port"]
    fill(page, {"Name": "main", "P4PORT": port, "P4USER": lab.perforce["user"]})
    page.get_by_role("button", name="Save and test").click()

    # What the worker finds arrives without a reload.
    expect_next(page, "Connect a site")
    page.get_by_role("link", name="Connect a site").click()
    uid, gid = (os.geteuid(), os.getegid()) if os.geteuid() else (20000, 20000)
    fill(
        page,
        {
            "Name": "lab",
            "Management address": lab.ontap["host"],
            "Port": lab.ontap["port"],
            "User": lab.ontap["user"],
            "CA file optional": lab.ontap["ca_file"],
            "SVM": "svm_of_others",
            "Aggregate": lab.ontap["aggregate"],
            "Mount root": lab.ontap["mount_root"],
            "uid of templates": uid,
            "gid of templates": gid,
            "Who may mount": "127.0.0.1",
        },
    )
    page.get_by_role("button", name="Save and test").click()
    expect(page.get_by_text("There is no SVM svm_of_others").first).to_be_visible()
    page.get_by_role("link", name="Edit lab").click()
    fill(page, {"SVM": lab.ontap["svm"]})
    page.get_by_role("button", name="Save and test").click()

    expect_next(page, "Build the first template")
    page.get_by_role("link", name="Define a template").click()
    fill(page, {"Name": "first", "View optional": f"//depot/{DEPOT}/... //any/..."})
    fill(page, {"Volume size": "100 MiB"})
    page.get_by_role("button", name="Define").click()
    page.get_by_role("link", name="Cloneyard", exact=True).click()
    page.get_by_role("button", name="Build first").click()
    expect(page.locator("h1 + .state")).to_have_text("Ready")

    page.get_by_role("link", name="Cloneyard", exact=True).click()
    expect_next(page, "Get the first workspace")
    page.get_by_role("button", name="Get a workspace").click()
    expect(page.locator("h1 + .state")).to_have_text("Ready")
    assert (Workspace.objects.get().path / "Makefile").is_file()
    page.goto("/setup/")
    expect(page.get_by_role("heading", name="My workspaces")).to_be_visible()
