"""/abandoned/: why it seems so, asking owners, retiring many, and how far that is."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from provisioner.accounts.mails import NO_MAIL_SERVER
from provisioner.accounts.models import User
from provisioner.engine.models import Operation
from provisioner.leases.abandoned import retirements_of_abandoned
from provisioner.leases.actions.abandoned import workspace_retire_abandoned
from provisioner.notify.models import Notification
from provisioner.workspaces.actions.retiring import workspace_restore, workspace_retry
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.abandoned import abandon
from tests.support.browsers import confirm, is_polling, post, table
from tests.support.workspaces import end, running_of

ABANDONED = "/abandoned/"


def test_each_sign_is_shown_with_its_time(as_admin: Client, ready: Workspace) -> None:
    abandon(ready, days=41, submitted=50, shelved=90)
    Workspace.objects.filter(pk=ready.pk).update(unique_bytes=3 * 2**30)

    page = as_admin.get(ABANDONED).text

    assert "No Perforce command for 41 days" in page
    assert "No submitted change for 50 days" in page
    assert "No shelved change for 90 days" in page
    assert "Retiring it would free <data" in page
    assert page.count("3 GiB</data>") == 2
    assert f"the last clone of {ready.snapshot.name}" in page


def test_nothing_abandoned_is_a_designed_page(
    as_admin: Client, ready: Workspace
) -> None:
    page = as_admin.get(ABANDONED).text

    assert "Nothing looks abandoned" in page
    assert "1 workspace has" in page


def test_all_can_be_chosen_without_scripts(as_admin: Client, ready: Workspace) -> None:
    abandon(ready)

    box = f'<input id="choose-{ready.pk}"'
    none, all_here = (
        as_admin.get(address).text.partition(box)[2].partition(">")[0]
        for address in (ABANDONED, f"{ABANDONED}?choose=page")
    )
    assert (" checked" in none, " checked" in all_here) == (False, True)


def test_it_is_searched_sorted_and_downloaded(
    as_admin: Client, ready: Workspace
) -> None:
    abandon(ready)
    kinds = [
        [row["name"] for row in table(as_admin, f"{ABANDONED}?as=csv&{query}")]
        for query in ("q=alice", "sort=-unique_bytes&page=9", "sort=owner", "q=x y")
    ]

    assert kinds == [["hers"], ["hers"], ["hers"], []]
    assert "hers" in as_admin.get(f"{ABANDONED}?q=HERS&sort=nonsense").text
    assert "No workspace matches." in as_admin.get(f"{ABANDONED}?q=nowhere").text


def test_owners_are_asked_after_a_preview(as_admin: Client, ready: Workspace) -> None:
    User.objects.filter(pk=ready.owner_id).update(email="alice@example.com")
    abandon(ready)

    preview = post(as_admin, ABANDONED, do="notify", chosen=[ready.pk])
    assert "A mail goes to alice@example.com." in preview.content.decode()
    assert not Notification.objects.filter(kind="abandoned").exists()
    confirm(as_admin, preview, ABANDONED)

    assert "Asked about: 1 workspace." in as_admin.get(ABANDONED).text
    assert Notification.objects.filter(kind="abandoned", workspace=ready).count() == 1

    Notification.objects.filter(kind="abandoned").update(claimed_at=timezone.now())
    preview = post(as_admin, ABANDONED, do="notify", chosen=[ready.pk])
    assert "A mail goes to" not in preview.content.decode()
    assert "No second mail is sent" in preview.content.decode()


def test_it_is_retired_after_a_preview_and_followed_until_it_is_away(
    as_admin: Client, ready: Workspace, settings: Any
) -> None:
    abandon(ready)
    settings.EMAIL_BACKEND = NO_MAIL_SERVER
    preview = post(as_admin, ABANDONED, do="retire", chosen=[ready.pk])
    assert "Retire 1 workspace?" in preview.content.decode()
    assert "Nobody is notified. This installation sends no" in preview.content.decode()
    ready.refresh_from_db()
    assert ready.state == Workspace.State.READY

    answer = confirm(as_admin, preview, ABANDONED)

    progress = answer["Location"]
    page = as_admin.get(progress).text
    assert "0 of 1 are in the trash or purged, 0 of them purged." in page
    assert "http-equiv" in page
    assert is_polling(page)
    end(running_of(ready), Operation.State.SUCCEEDED)
    ready.refresh_from_db()
    assert is_polling(as_admin.get(ABANDONED).text)
    set_workspace_state(ready, Workspace.State.TRASHED)
    Workspace.objects.filter(pk=ready.pk).update(unique_bytes=3 * 2**30)

    page = as_admin.get(progress, headers={"HX-Request": "true"}).text

    assert "1 of 1 are in the trash or purged, 0 of them purged." in page
    assert not is_polling(page)
    # It stays beside what looks abandoned until it is really gone.
    page = as_admin.get(ABANDONED).text
    assert "Nothing looks abandoned" in page
    assert "It is purged on <time" in page
    assert "3 GiB</data>" in page
    set_workspace_state(ready, Workspace.State.PURGING)
    assert "not yet purged" in as_admin.get(ABANDONED).text
    set_workspace_state(ready, Workspace.State.RETIRED)
    assert "not yet purged" not in as_admin.get(ABANDONED).text
    said = "1 of 1 are in the trash or purged, 1 of them purged."
    assert said in as_admin.get(progress).text


def test_what_stopped_it_stays_on_the_page(as_admin: Client, ready: Workspace) -> None:
    abandon(ready)
    preview = post(as_admin, ABANDONED, do="retire", chosen=[ready.pk])
    answer = confirm(as_admin, preview, ABANDONED)
    end(running_of(ready), Operation.State.REFUSED, message="Not comparable.")
    ready.refresh_from_db()
    set_workspace_state(ready, Workspace.State.READY)

    page = as_admin.get(answer["Location"]).text

    assert "Not comparable." in page
    assert not is_polling(page)


def test_a_retry_stays_on_the_page_and_a_restore_leaves_it(
    admin: User, ready: Workspace
) -> None:
    def listed() -> list[Workspace]:
        return [line.workspace for line in retirements_of_abandoned(admin).lines]

    abandon(ready)
    workspace_retire_abandoned(by=admin, workspace=ready)
    end(running_of(ready), Operation.State.FAILED)
    ready.refresh_from_db()
    set_workspace_state(ready, Workspace.State.FAILED, code="busy")

    workspace_retry(by=admin, workspace=ready)

    assert listed() == [ready]
    workspace_restore(by=ready.owner, workspace=ready)
    ready.refresh_from_db()
    set_workspace_state(ready, Workspace.State.READY)
    assert listed() == []


def test_a_choice_is_needed_and_has_to_be_abandoned(
    as_admin: Client, ready: Workspace
) -> None:
    none = post(as_admin, ABANDONED, do="retire")
    assert none.status_code == 422

    abandon(ready, submitted=1)
    preview = post(as_admin, ABANDONED, do="retire", chosen=[ready.pk])

    assert "does not look abandoned" in preview.content.decode()
    answer = confirm(as_admin, preview, ABANDONED)
    assert answer.status_code == 422
    ready.refresh_from_db()
    assert ready.state == Workspace.State.READY


def test_an_address_that_names_nothing_is_a_page(as_admin: Client) -> None:
    answer = as_admin.get(f"{ABANDONED}progress/?workspaces=,x,99999999999999999999,7")

    assert answer.status_code == 200
    assert "No workspaces were named." in answer.text


@pytest.mark.parametrize("who", ["alice", "carol"])
def test_it_is_for_administrators(
    request: pytest.FixtureRequest, ready: Workspace, who: str
) -> None:
    browser: Client = request.getfixturevalue(f"as_{who}")
    abandon(ready)

    answers = {
        browser.get(ABANDONED).status_code,
        post(browser, ABANDONED, do="retire", chosen=[ready.pk]).status_code,
        browser.get(f"{ABANDONED}progress/?workspaces={ready.pk}").status_code,
    }

    assert answers == {403}
