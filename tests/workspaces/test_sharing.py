"""Sharing a workspace: who may see it then, and what stays as it was."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now

from provisioner.accounts.models import Team, User
from provisioner.accounts.tokens import token_create
from provisioner.lib.refusals import (
    ActionRefused,
    InvalidRequest,
    NotAllowed,
    TooMany,
)
from provisioner.workspaces.actions import sharing
from provisioner.workspaces.actions.sharing import workspace_share, workspace_unshare
from provisioner.workspaces.models import Share, Workspace
from provisioner.workspaces.queries import workspaces_shared_with, workspaces_visible_to
from provisioner.workspaces.refusals import (
    AlreadyTheirs,
    NobodyOfThatName,
    WorkspaceNotReady,
)
from provisioner.workspaces.sharing import company_of
from tests.support.browsers import browser_of
from tests.support.factories import SnapshotFactory, UserFactory
from tests.support.module_rows import written_once
from tests.support.requests import workspace_create
from tests.support.rights_world import (
    address_of,
    people,
    shared_workspace,
    world,
    written,
)

__all__ = ["people", "shared_workspace", "world", "written", "written_once"]

People = dict[str, User]


@pytest.fixture
def mates(people: People) -> Team:
    """The team of carol and ci, to which alice does not belong."""
    team = Team.objects.create(name="Audio")
    for who in ("carol", "ci"):
        people[who].team = team
        people[who].save()
    return team


def test_a_share_opens_the_workspace_until_it_is_revoked(
    people: People, shared_workspace: Workspace, mates: Team
) -> None:
    alice, carol = people["alice"], people["carol"]
    assert not workspaces_visible_to(carol)

    share = workspace_share(by=alice, workspace=shared_workspace, team="Audio")
    again = workspace_share(by=alice, workspace=shared_workspace, team="Audio")

    assert again == share
    assert workspaces_visible_to(carol).get() == shared_workspace
    assert workspaces_shared_with(carol).get() == shared_workspace
    assert not workspaces_shared_with(alice)

    workspace_unshare(by=people["admin"], share=share)

    assert not workspaces_visible_to(carol)
    assert not workspaces_shared_with(carol)
    said = [
        (e.kind, e.message, e.actor_name) for e in shared_workspace.events.all()[:2]
    ]
    assert said == [
        ("workspace_unshared", "No longer shared with the team Audio.", "admin"),
        ("workspace_shared", "Shared with the team Audio, read-only.", "alice"),
    ]
    shared = shared_workspace.events.filter(kind="workspace_shared")
    assert shared.count() == 3  # with dave and erin, too


def test_a_share_with_an_end_is_over_then(
    people: People, shared_workspace: Workspace
) -> None:
    alice, carol = people["alice"], people["carol"]
    day = dt.timedelta(days=1)
    share = workspace_share(
        by=alice, workspace=shared_workspace, person="carol", ends_at=now() + day
    )
    assert shared_workspace.events.all()[0].message.startswith(
        "Shared with carol, read-only, until "
    )
    assert workspaces_visible_to(carol).get() == shared_workspace

    Share.objects.filter(pk=share.pk).update(ends_at=now() - day)

    assert not workspaces_visible_to(carol)
    assert share not in company_of(alice, shared_workspace).shares
    with pytest.raises(InvalidRequest):
        workspace_share(
            by=alice, workspace=shared_workspace, person="carol", ends_at=now() - day
        )
    again = workspace_share(by=alice, workspace=shared_workspace, person="carol")
    assert again == share
    assert again.ends_at is None
    assert workspaces_visible_to(carol).get() == shared_workspace


def test_a_share_that_is_over_takes_no_place(
    people: People, shared_workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "MOST_SHARES", shared_workspace.shares.count())
    alice = people["alice"]
    with pytest.raises(TooMany):
        workspace_share(by=alice, workspace=shared_workspace, person="carol")
    over = shared_workspace.shares.earliest("pk")
    Share.objects.filter(pk=over.pk).update(ends_at=now() - dt.timedelta(days=1))

    workspace_share(by=alice, workspace=shared_workspace, person="carol")

    assert not Share.objects.filter(pk=over.pk).exists()


@pytest.mark.parametrize(
    ("by", "named", "refusal"),
    [
        ("bob", {"person": "carol"}, NotAllowed),
        ("dave", {"person": "carol"}, NotAllowed),
        ("alice", {"person": "nobody.there\0"}, NobodyOfThatName),
        ("alice", {"team": "carol"}, NobodyOfThatName),
        ("alice", {"person": "gone"}, NobodyOfThatName),
        ("alice", {"person": "alice"}, AlreadyTheirs),
        ("alice", {"person": "bob"}, AlreadyTheirs),
        ("alice", {"team": "Rendering"}, AlreadyTheirs),
        ("alice", {}, InvalidRequest),
        ("alice", {"person": "carol", "team": "Audio"}, InvalidRequest),
    ],
)
def test_sharing_refuses(
    by: str,
    named: dict[str, Any],
    refusal: type[ActionRefused],
    people: People,
    shared_workspace: Workspace,
) -> None:
    UserFactory.create(username="gone", is_active=False)
    with pytest.raises(refusal):
        workspace_share(by=people[by], workspace=shared_workspace, **named)
    assert shared_workspace.shares.count() == 2


def test_what_is_put_away_is_not_shared(
    people: People, shared_workspace: Workspace
) -> None:
    Workspace.objects.filter(pk=shared_workspace.pk).update(
        state="trashed",
        trashed_at=shared_workspace.ready_at,
        purge_at=shared_workspace.ready_at,
    )
    with pytest.raises(WorkspaceNotReady):
        workspace_share(by=people["alice"], workspace=shared_workspace, person="carol")
    assert not workspaces_shared_with(people["dave"])


def test_a_scoped_token_gains_nothing_by_a_share(
    people: People, shared_workspace: Workspace
) -> None:
    dave = people["dave"]
    dave.token, _ = token_create(by=dave, max_workspaces=1)
    assert not workspaces_visible_to(dave)


def test_siblings_of_others_are_counted_not_named(
    people: People, shared_workspace: Workspace
) -> None:
    template = shared_workspace.template
    for who in ("alice", "carol", "ci"):
        workspace_create(by=people[who], template=template, name=f"of-{who}")
    other = SnapshotFactory.create(template=template)
    workspace_create(by=people["alice"], template=template, snapshot=other)

    seen = {who: company_of(people[who], shared_workspace) for who in ("alice", "dave")}
    seen["admin"] = company_of(people["admin"], shared_workspace)

    names = {who: [s.workspace.name for s in one.siblings] for who, one in seen.items()}
    assert names == {
        "alice": ["of-alice"],
        "dave": [],
        "admin": ["of-alice", "of-carol", "of-ci"],
    }
    assert {who: one.others for who, one in seen.items()} == {
        "alice": "And 2 more.",
        "dave": "3 clones of other people.",
        "admin": "",
    }


def test_pages_say_what_a_share_does_and_does_not(
    people: People, shared_workspace: Workspace
) -> None:
    page = reverse("workspace-detail", args=[shared_workspace.pk])
    share = reverse("workspace-share", args=[shared_workspace.pk])
    as_alice, as_dave, as_carol = Client(), Client(), Client()
    as_alice.force_login(people["alice"])
    as_dave.force_login(people["dave"])
    as_carol.force_login(people["carol"])

    named = {"kind": "person", "name": "carol"}
    shown = as_alice.post(share, {**named, "span": "2 weeks"}, follow=True)
    assert "is shared with carol" in shown.text
    assert "until " in shown.text.partition("Shared with</h2>")[2]
    for wrong in ("soon", "2020-01-01", "999999999 weeks", "0001-01-01"):
        answer = as_alice.post(share, {**named, "span": wrong})
        at_field = answer.text.rpartition('class="field field-wrong"')[2]
        assert f'value="{wrong}"' in at_field
        assert 'value="carol"' in answer.text
    assert "Files do not change" in as_alice.get(share).text
    refused = as_alice.post(share, {"kind": "team", "name": "Nope"})
    at_field = refused.text.partition('class="field field-wrong"')[2]
    assert refused.status_code == 409
    assert "There is no team “Nope”" in at_field
    assert 'value="Nope"' in at_field
    assert '<option value="team" selected>' in refused.text
    empty = as_alice.post(share, {"kind": "person"})
    assert empty.status_code == 422
    assert "Name a person" in empty.text.partition("field-wrong")[2]

    seen = as_dave.get(page).text
    assert "alice shares this workspace with you, read-only" in seen
    assert "Your gid is theirs" in seen
    for hidden in ("Shared with</h2>", ">Retire<", "Revoke", "P4CONFIG"):
        assert hidden not in seen
    assert "Shared with me" in as_dave.get(reverse("workspace-list")).text

    one = shared_workspace.shares.get(person__username="carol")
    assert as_carol.get(page).status_code == 200
    as_alice.post(reverse("workspace-unshare", args=[shared_workspace.pk, one.pk]))
    assert as_carol.get(page).status_code == 404
    assert "Shared with me" not in as_carol.get(reverse("workspace-list")).text


def test_names_are_completed_for_who_may_share(
    people: People, shared_workspace: Workspace, mates: Team
) -> None:
    names = reverse("workspace-share-names", args=[shared_workspace.pk])
    as_alice = browser_of(people["alice"])

    def completed(**typed: str) -> list[str]:
        page = as_alice.get(names, {"kind": "person", **typed}).text
        return re.findall(r'value="(.*?)"', page)

    assert completed(name="CAR") == ["carol"]
    assert completed(name="") == [], "names are completed, not listed"
    assert completed(name="alic") == completed(name="bob") == [], "they are in already"
    assert completed(name="\0") == completed(name="%") == []
    assert completed(name="aud", kind="team") == ["Audio"]
    assert browser_of(people["dave"]).get(names).status_code == 403


def test_the_api_shares_and_revokes(
    people: People, shared_workspace: Workspace
) -> None:
    _, secret = token_create(by=people["alice"])
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    address = address_of(
        "workspace-share-list",
        prefix="api/",
        numbers={"workspace-share-": {"workspace_pk": shared_workspace.pk}},
    )

    made = client.post(address, {"person": "carol"}, content_type="application/json")
    taken = client.post(address, {"person": "bob"}, content_type="application/json")
    past = {"person": "carol", "ends_at": "2020-01-01T00:00:00Z"}
    over = client.post(address, past, content_type="application/json")

    assert made.status_code == 201
    assert made.json()["person"] == "carol"
    assert made.json()["team"] is made.json()["ends_at"] is None
    assert (over.status_code, over.json()["code"]) == (400, "invalid")
    assert (taken.status_code, taken.json()["code"]) == (409, "already_theirs")
    listed = client.get(address).json()["results"]
    assert [one["person"] for one in listed] == ["carol", "erin", "dave"]
    assert client.delete(f"{address}/{made.json()['id']}").status_code == 204
    assert client.delete(f"{address}/{made.json()['id']}").status_code == 404
