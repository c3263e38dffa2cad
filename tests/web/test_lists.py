"""Lists: order, tables to download and acts on many, by those of workspaces."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot
from provisioner.dashboard.lists import (
    ALL_WORKSPACES,
    Extend,
    Keep,
    Retire,
)
from provisioner.engine.models import Operation
from provisioner.transfer.actions import workspace_transfer
from provisioner.web.bulk import MOST_AT_A_TIME, RowOutcome, in_bulk
from provisioner.web.lists.acts import Act
from provisioner.web.lists.pages import CountingPaginator, KeyPaginator
from provisioner.workspaces.actions.retiring import (
    workspace_purge,
    workspace_restore,
    workspace_retire,
)
from provisioner.workspaces.lists import Purge, Restore
from provisioner.workspaces.models import Unsubmitted, Workspace
from provisioner.workspaces.queries import workspaces_visible_to
from provisioner.workspaces.states import set_workspace_state
from tests.support.browsers import confirm, downloaded, post, table
from tests.support.factories import SnapshotFactory, UserFactory
from tests.support.requests import workspace_create
from tests.support.workspaces import end, running_of, states_of

ALL, TRASH = "/workspaces/", "/trash/"


def make_ready(workspace: Workspace) -> Workspace:
    end(running_of(workspace), Operation.State.SUCCEEDED)
    set_workspace_state(workspace, Workspace.State.READY)
    return workspace


@pytest.fixture
def three(alice: User, snapshot: Snapshot) -> list[Workspace]:
    """Three of alice's: "x" and "z" ready, "y" in the trash."""
    x, y, z = (
        make_ready(workspace_create(by=alice, template=snapshot.template, name=name))
        for name in "xyz"
    )
    end(workspace_retire(by=alice, workspace=y), Operation.State.SUCCEEDED)
    y.refresh_from_db()
    set_workspace_state(y, Workspace.State.TRASHED)
    return [x, y, z]


def names(browser: Client, query: str) -> list[str]:
    return [row["name"] for row in table(browser, f"{ALL}?as=csv&{query}")]


def test_a_download_of_a_table_has_a_place_until_it_is_sent(
    as_admin: Client, settings: Settings
) -> None:
    settings.API_WAITS_PER_PERSON = 1
    for address in (f"{ALL}?as=csv", "/savings/?as=csv"):
        first = as_admin.get(address)
        assert as_admin.get(address).status_code == 429
        assert as_admin.get(ALL).status_code == 200
        downloaded(first)


def test_the_address_sorts_and_a_table_has_all_that_match(
    as_admin: Client, three: list[Workspace]
) -> None:
    Workspace.objects.filter(name="z").update(expires_at=None)

    assert names(as_admin, "") == ["z", "y", "x"]
    assert names(as_admin, "sort=name") == ["x", "y", "z"]
    assert names(as_admin, "sort=-name&page=9") == ["z", "y", "x"]
    assert names(as_admin, "sort=nonsense&q=Z") == ["z"]
    assert names(as_admin, "sort=expires_at")[-1] == "z"
    assert names(as_admin, "sort=-expires_at")[-1] == "z", "what has none comes last"
    [row] = table(as_admin, f"{ALL}?as=csv&q=x")
    assert row["owner"] == "alice"
    assert row["path"].endswith("/w-x")
    assert row["expires_at"].endswith("+00:00")


@pytest.mark.parametrize("sort", ["name", "-expires_at"])
def test_pages_one_after_the_other_are_all_of_it_in_order(
    three: list[Workspace], sort: str
) -> None:
    Workspace.objects.filter(name="z").update(expires_at=None)
    keys = ALL_WORKSPACES.ordered(Workspace.objects.all(), sort).values_list(
        "pk", flat=True
    )

    for per_page in (1, 2, 3, 4):
        pages = KeyPaginator(keys, per_page)
        shown = [key for page in pages for key in page.object_list]
        assert shown == list(keys), per_page


@pytest.mark.parametrize("near", [0, 1, 1000])
@pytest.mark.parametrize("per_page", [1, 2, 3, 4])
def test_pages_that_count_as_they_read_are_the_same(
    three: list[Workspace], near: int, per_page: int
) -> None:
    for rows in (Workspace.objects.all(), Workspace.objects.none()):
        keys = rows.order_by("name", "pk").values_list("pk", flat=True)
        for number in (None, "", "x", "-1", "0", "1", "2", "3", "4", "9" * 30):
            wanted = KeyPaginator(keys, per_page).get_page(number)
            pages = CountingPaginator(keys, per_page)
            pages.near = near
            page = pages.get_page(number)
            assert page.object_list == wanted.object_list, number
            assert page.number == wanted.number
            assert page.paginator.count == wanted.paginator.count


def test_the_first_and_the_last_page_are_counted_in_the_query_that_reads_them(
    three: list[Workspace], django_assert_num_queries: Any
) -> None:
    keys = Workspace.objects.order_by("name", "pk").values_list("pk", flat=True)

    for number in ("1", "2", "3", "99"):
        pages = CountingPaginator(keys, 1)
        pages.near = 2
        with django_assert_num_queries(1):
            page = pages.get_page(number)
            assert (page.number, page.paginator.count) == (min(int(number), 3), 3)


def test_a_heading_says_how_it_is_sorted_and_leads_to_the_other_way(
    as_admin: Client, three: list[Workspace]
) -> None:
    page = as_admin.get(f"{ALL}?q=alice&sort=name&page=1").text

    assert page.count("aria-sort") == 1
    assert (
        '<th scope="col" aria-sort="ascending"><a href="?q=alice&amp;sort=-name">'
        in (page)
    )
    assert "?q=alice&amp;sort=-created_at" in page
    assert "?q=alice&amp;sort=name&amp;as=csv" in page
    boxes = re.findall(r'name="chosen"[^>]*>', page)
    assert [" checked" in box for box in boxes] == [False] * 3
    page = as_admin.get(f"{ALL}?choose=page").text
    boxes = re.findall(r'name="chosen"[^>]*>', page)
    assert [" checked" in box for box in boxes] == [True] * 3


def test_many_are_retired_after_a_preview_that_says_what_would_happen(
    as_admin: Client, three: list[Workspace]
) -> None:
    address = f"{ALL}?q=alice&choose=page"
    events = Event.objects.count()

    preview = post(as_admin, address, do="retire", chosen=[w.pk for w in three])

    text = preview.content.decode()
    assert "Retire 2 workspaces?" in text
    assert "Otherwise it can be restored for 3 d." in text
    assert "The workspace “y” was retired." in text
    assert states_of(*three) == ["ready", "trashed", "ready"]
    assert Event.objects.count() == events, "nothing is left of the rehearsal"

    done = confirm(as_admin, preview, address)

    assert done["Location"] == f"{ALL}?q=alice"
    assert "Being retired: 2 workspaces." in as_admin.get(done["Location"]).text
    assert states_of(*three) == ["retiring", "trashed", "retiring"]


def test_a_refusal_at_the_end_stops_no_other_and_says_why(
    as_admin: Client, alice: User, three: list[Workspace]
) -> None:
    preview = post(as_admin, ALL, do="retire", chosen=[w.pk for w in three])
    end(
        workspace_retire(by=alice, workspace=three[0]),
        Operation.State.SUCCEEDED,
    )
    three[0].refresh_from_db()
    set_workspace_state(three[0], Workspace.State.TRASHED)

    page = as_admin.get(confirm(as_admin, preview, ALL)["Location"]).text

    assert "Being retired: 1 workspace." in page
    assert "Left out: 1 workspace.<br><b>x</b>: The workspace “x” was retired." in page
    assert states_of(*three) == ["trashed", "trashed", "retiring"]


def test_values_are_previewed_and_one_confirmation_is_enough(
    as_admin: Client, three: list[Workspace]
) -> None:
    a, b, c = three
    chosen = [a.pk, b.pk, 10**9, "x"]
    preview = post(as_admin, ALL, do="extend", chosen=chosen).content.decode()
    assert "Extend 1 workspace?" in preview
    assert "The workspace “y” is in the trash." in preview
    assert "2 of those chosen are no longer there" in preview
    sent = {"do": "extend", "chosen": [c.pk], "left_out": [b.pk]}
    wrong = post(as_admin, ALL, **sent, step="sure", span="long")
    assert wrong.status_code == 422
    assert "Write a time such as 30 d" in wrong.content.decode()
    assert "The workspace “y”" not in wrong.content.decode(), "nobody knows yet"
    for kept in ('value="long"', f'value="{c.pk}"', f'value="{b.pk}"'):
        assert kept in wrong.content.decode()
    shown = post(as_admin, ALL, **sent, step="again", span="60 d").content.decode()
    assert "Its lease is extended until" in shown
    assert "The workspace “y” is in the trash." in shown
    c.refresh_from_db()
    before = c.expires_at

    done = post(as_admin, ALL, **sent, step="sure", span="60 d")

    said = as_admin.get(done["Location"]).text
    assert "Extended: 1 workspace." in said
    assert "Left out" not in said, "what the preview left out was not asked for"
    c.refresh_from_db()
    assert before is not None
    assert c.expires_at is not None
    assert c.expires_at > before


def test_scripts_see_what_values_would_do_while_they_are_typed(
    as_admin: Client, three: list[Workspace]
) -> None:
    sent = {"do": "extend", "step": "again", "chosen": [three[0].pk]}
    for span, said in (
        ("60 d", "Its lease is extended until"),
        (f"{timezone.localdate() + dt.timedelta(days=60)}", "Its lease is extended"),
        ("6 x", "Write a time such"),
    ):
        answer = as_admin.post(
            ALL, {**sent, "span": span}, headers={"HX-Request": "true"}
        )
        assert answer.status_code == 200, "htmx shows nothing of a failure"
        effect = answer.text[answer.text.index('id="effect"') :]
        assert said in effect.partition("</form>")[0]


def test_a_preview_sums_up_and_keeps_all_but_twenty_folded(
    as_admin: Client, alice: User, snapshot: Snapshot
) -> None:
    rows = [
        make_ready(workspace_create(by=alice, template=snapshot.template, name=f"w{n}"))
        for n in range(23)
    ]

    with CaptureQueriesContext(connection) as for_one:
        post(as_admin, ALL, do="retire", chosen=[rows[0].pk])
    with CaptureQueriesContext(connection) as for_all:
        text = post(as_admin, ALL, do="retire", every="1").content.decode()

    assert len(for_all) <= len(for_one)
    shares = re.search(r'class="effect-shares">(.*?)</ul>', text, re.DOTALL)
    assert shares is not None
    assert "<strong>23</strong> It stays if it has unsubmitted work." in shares[1]
    shown, _, folded = text.partition("<summary>The other 3</summary>")
    assert shown.count('name="chosen"') == 20
    assert folded.count('name="chosen"') == 3
    assert states_of(*rows) == ["ready"] * 23


def put_away(alice: User, snapshot: Snapshot) -> None:
    """Make one in the trash, being restored, being purged, retired, and half gone."""
    trashed, restored, purged, gone, stuck = [
        make_ready(workspace_create(by=alice, template=snapshot.template, name=name))
        for name in ("trashed", "restored", "purged", "gone", "stuck")
    ]
    for one in (trashed, restored, purged, gone, stuck):
        end(workspace_retire(by=alice, workspace=one), Operation.State.SUCCEEDED)
        one.refresh_from_db()
        set_workspace_state(one, Workspace.State.TRASHED)
    workspace_restore(by=alice, workspace=restored)
    workspace_purge(by=alice, workspace=purged)
    end(workspace_purge(by=alice, workspace=gone), Operation.State.SUCCEEDED)
    purge = workspace_purge(by=alice, workspace=stuck)
    purge.steps.filter(name="delete").update(attempt=1)
    end(purge, Operation.State.FAILED)
    for one in (gone, stuck):
        one.refresh_from_db()
    set_workspace_state(gone, Workspace.State.RETIRED)
    set_workspace_state(stuck, Workspace.State.FAILED, code="broken", message="No.")


def without_minutes(said: Sequence[RowOutcome[Any]]) -> list[tuple[Any, str, str]]:
    """Return what is said without times of day: a minute may pass in between."""
    return [
        (one.row, re.sub(r"\d\d:\d\d UTC", "", one.sentence), one.code) for one in said
    ]


def test_what_is_said_of_all_at_once_is_what_each_would_meet(
    alice: User, snapshot: Snapshot, three: list[Workspace]
) -> None:
    transferred, _, retiring, failed, kept, built = made = [
        workspace_create(by=alice, template=snapshot.template, name=name)
        for name in ("t", "n", "r", "f", "k", "b")
    ]
    end(running_of(failed), Operation.State.FAILED)
    set_workspace_state(failed, Workspace.State.FAILED, code="broken", message="No.")
    workspace_retire(by=alice, workspace=retiring)
    for one in (transferred, kept, built):
        make_ready(one)
    SnapshotFactory.create(template=snapshot.template, change=snapshot.change + 1)
    workspace_transfer(by=alice, workspace=transferred)
    keep, become = (Workspace.objects.filter(pk=one.pk) for one in (kept, built))
    keep.update(keep_reason="A demo.", expires_at=None)
    become.update(purpose=Workspace.Purpose.BUILD)
    put_away(alice, snapshot)
    rows = list(workspaces_visible_to(alice))
    ways: list[tuple[type[Act[Workspace]], dict[str, Any]]] = [
        *((Retire, {"unsubmitted": way}) for way in (Unsubmitted.REFUSE, "rescue")),
        *((Extend, {"span": dt.timedelta(days=days)}) for days in (60, 365)),
        (Extend, {"span": None}),
        (Keep, {"reason": "A demo."}),
        *((kind, {}) for kind in (Restore, Purge)),
    ]

    refusals = set()
    for by in (alice, UserFactory.create(is_staff=True), UserFactory.create()):
        for kind, told in ways:
            act = kind(by=by)
            with CaptureQueriesContext(connection) as read:
                said = act.preview(rows, told)
            # A retirement asks features above, one query each: transfers, splits.
            assert len(read) <= 3, kind
            assert len(said) > len(made) + len(three)
            met = in_bulk(rows, Act.forecast(act, rows, told))
            assert without_minutes(said) == without_minutes(met), kind
            refusals |= {one.code for one in said}
    assert refusals == {
        *("", "not_allowed", "workspace_retired", "being_transferred"),
        *("workspace_busy", "workspace_kept", "lease_not_longer"),
        *("lease_too_long", "not_allowed_to_keep"),
        *("nothing_to_restore", "not_in_trash"),
    }


def test_a_reason_is_asked_for_once(as_admin: Client, three: list[Workspace]) -> None:
    sent = {"do": "keep", "chosen": [three[0].pk], "step": "sure"}

    assert post(as_admin, ALL, **sent, reason="").status_code == 422
    assert post(as_admin, ALL, **sent, reason="A demo.").status_code == 302

    three[0].refresh_from_db()
    assert three[0].keep_reason == "A demo."


def test_all_that_match_can_be_chosen(as_admin: Client, three: list[Workspace]) -> None:
    page = post(as_admin, f"{ALL}?state=ready", do="retire", every="1").content.decode()
    assert "Retire 2 workspaces?" in page


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"do": "retire"}, "Choose at least one."),
        ({"do": "nonsense", "chosen": ["1"]}, "Choose an action."),
        (
            {"do": "retire", "every": "1"},
            f"Choose up to {MOST_AT_A_TIME} at a time.",
        ),
    ],
)
def test_a_choice_that_cannot_be_is_said(
    as_admin: Client,
    three: list[Workspace],
    sent: dict[str, Any],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("provisioner.web.bulk.MOST_AT_A_TIME", 1)
    said = said.replace(str(MOST_AT_A_TIME), "1")
    answer = post(as_admin, ALL, **sent)
    assert answer.status_code == 422
    assert said in answer.content.decode()


def test_owners_restore_and_purge_from_the_trash(
    as_alice: Client, as_carol: Client, three: list[Workspace]
) -> None:
    b = three[1]
    theirs = post(as_carol, TRASH, do="purge", step="sure", chosen=[b.pk])
    assert theirs.status_code == 422, "it is not in carol's list"
    preview = post(as_alice, TRASH, do="purge", chosen=[b.pk])
    assert "It is purged." in preview.content.decode()

    preview = post(as_alice, TRASH, do="restore", chosen=[b.pk])
    confirm(as_alice, preview, TRASH)

    assert states_of(b) == ["restoring"]
