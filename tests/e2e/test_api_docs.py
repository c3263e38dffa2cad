"""The API's docs page in a real browser, under the policy that all pages have."""

from __future__ import annotations

import subprocess

import pytest
from playwright.sync_api import expect

from provisioner.accounts.models import ApiToken, User
from provisioner.catalog.models import Snapshot, Template
from provisioner.workspaces.models import Workspace
from tests.support.chromium import SETTLED_WITHIN_MS, SignIn
from tests.support.factories import PASSWORD

pytestmark = [
    pytest.mark.browser,
    pytest.mark.integration,
    pytest.mark.django_db(transaction=True),
]


def test_the_docs_page_lets_people_try_it_with_their_session_and_asks_nobody_else(
    alice: User, template: Template, sign_in: SignIn
) -> None:
    page = sign_in(alice)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    answer = page.goto("/api/docs/")

    tag = page.get_by_placeholder("Filter by tag")
    tag.fill("workspaces")
    summary = page.get_by_text("Ask for a workspace")
    expect(summary).to_be_visible(timeout=SETTLED_WITHIN_MS)
    assert answer is not None
    assert "unsafe" not in answer.headers["content-security-policy"]
    tag.fill("tokens")
    page.get_by_text("Create a token", exact=True).click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute").click()
    answered = page.locator(".live-responses-table .response-col_status")
    expect(answered.last).to_contain_text("201", timeout=SETTLED_WITHIN_MS)
    here = answer.url.removesuffix("/api/docs/")
    assert [url for url in asked if not url.startswith((here, "data:"))] == []


def test_its_quick_start_can_be_pasted(
    alice: User, snapshot: Snapshot, sign_in: SignIn
) -> None:
    Template.objects.filter(pk=snapshot.template_id).update(name="any-name")
    page = sign_in(alice)
    page.goto("/api/docs/")
    blocks = page.get_by_role("region", name="Quick start").locator("pre")
    pasted = "\n".join(blocks.all_inner_texts())
    # Nobody sits here to be asked, and no worker makes it.
    pasted = pasted.replace("-u 'alice'", f"-u 'alice:{PASSWORD}'")
    pasted = pasted.replace("?wait=60", "?wait=0")

    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", pasted],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert ran.returncode == 0, ran.stderr
    workspace = Workspace.objects.get()
    assert workspace.request_key == "quick-start"
    assert ran.stdout.count(f'"name":"{workspace.name}"') == 2
    assert ApiToken.objects.filter(name="quick start", user=alice).exists()
