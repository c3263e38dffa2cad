"""/lease-policies/: what counts, and changing it after a check at whom it affects."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from provisioner.accounts.mails import NO_MAIL_SERVER
from provisioner.catalog.models import Snapshot, Template
from provisioner.leases.models import LeasePolicy
from provisioner.workspaces.models import Workspace
from tests.support.requests import workspace_create

EDIT = "/lease-policies/edit/"
SHORT = {
    "purpose": "development",
    "template": "",
    "default_seconds": "10 d",
    "maximum_seconds": "20 d",
    "warn_seconds": "3 d, 12 h",
    "trash_seconds": "24 h",
}


def seal_in(text: str) -> str:
    found = re.search(r'name="seal" value="(\w+)"', text)
    assert found is not None
    return found[1]


def test_it_shows_what_counts(
    as_admin: Client, template: Template, settings: Any
) -> None:
    settings.EMAIL_BACKEND = NO_MAIL_SERVER
    LeasePolicy.objects.create(
        template=template, purpose="build", default_seconds=3600, trash_seconds=0
    )

    page = as_admin.get("/lease-policies/").text

    assert "built in" in page
    assert "90 d at a time" in page
    assert "7 d, 1 d" in page
    assert "Nobody is warned before a lease ends. This installation sends no" in page
    own = page[page.index("Policies of templates") :]
    assert f">{template.name}</a>" in own
    assert "Build only" in own


def test_the_first_time_it_shows_whom_it_affects(
    as_admin: Client, ready: Workspace
) -> None:
    assert 'value="30 d"' in as_admin.get(f"{EDIT}?purpose=development").text

    answer = as_admin.post(EDIT, {**SHORT, "do": "preview"})

    assert answer.status_code == 200
    assert "Affected: 1 workspace" in answer.text
    assert "instead of" in answer.text
    assert 'value="save"' in answer.text
    assert not LeasePolicy.objects.exists()


def test_the_second_time_it_saves(as_admin: Client, ready: Workspace) -> None:
    seal = seal_in(as_admin.post(EDIT, {**SHORT, "do": "preview"}).text)

    answer = as_admin.post(EDIT, {**SHORT, "do": "save", "seal": seal}, follow=True)

    assert "Saved. 1 deadline moved." in answer.text
    row = LeasePolicy.objects.get()
    assert row.warn_seconds == [3 * 86400, 12 * 3600]
    ready.refresh_from_db()
    assert ready.expires_at is not None
    assert ready.expires_at <= timezone.now() + dt.timedelta(days=20)


def test_nothing_is_saved_unseen(
    as_admin: Client, ready: Workspace, snapshot: Snapshot
) -> None:
    refused = as_admin.post(EDIT, {**SHORT, "do": "save"})
    assert refused.status_code == 409

    seal = seal_in(refused.text)
    workspace_create(by=ready.owner, template=snapshot.template, name="more")
    refused = as_admin.post(EDIT, {**SHORT, "do": "save", "seal": seal})

    assert refused.status_code == 409
    assert "Affected: 2 workspaces" in refused.text
    assert not LeasePolicy.objects.exists()
    saved = as_admin.post(EDIT, {**SHORT, "do": "save", "seal": seal_in(refused.text)})
    assert saved.status_code == 302


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("default_seconds", "long"),
        ("maximum_seconds", "5 d"),
        ("warn_seconds", "7 d; 1 d"),
        ("trash_seconds", ""),
        ("template", "999999"),
        ("purpose", "play"),
    ],
)
def test_what_makes_no_sense_is_said_at_the_form(
    as_admin: Client, field: str, value: str
) -> None:
    answer = as_admin.post(EDIT, {**SHORT, field: value, "do": "preview"})

    assert answer.status_code in (409, 422)
    assert not LeasePolicy.objects.exists()


def test_one_is_removed_after_a_check(as_admin: Client, ready: Workspace) -> None:
    row = LeasePolicy.objects.create(
        template=ready.template, purpose="development", default_seconds=86400
    )
    page = as_admin.get(f"/lease-policies/{row.pk}/remove/").text
    assert "The built-in policy counts then" in page
    unseen = as_admin.post(f"/lease-policies/{row.pk}/remove/")
    assert unseen.status_code == 409

    as_admin.post(f"/lease-policies/{row.pk}/remove/", {"seal": seal_in(page)})

    assert not LeasePolicy.objects.exists()


@pytest.mark.parametrize("who", ["alice", "carol"])
def test_it_is_for_administrators(
    request: pytest.FixtureRequest, template: Template, who: str
) -> None:
    browser: Client = request.getfixturevalue(f"as_{who}")
    row = LeasePolicy.objects.create(purpose="development", default_seconds=86400)

    answers = {
        browser.get("/lease-policies/").status_code,
        browser.get(EDIT).status_code,
        browser.post(EDIT, {**SHORT, "do": "save"}).status_code,
        browser.post(f"/lease-policies/{row.pk}/remove/").status_code,
    }

    assert answers == {403}
    assert LeasePolicy.objects.get() == row
