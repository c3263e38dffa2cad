"""No workspace is asked for that has no place; every refusal says which limit it is."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.accounts.models import Team, User
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Snapshot, Template, VolumePolicy
from provisioner.engine.models import Operation
from provisioner.lib.limits import REFUSALS, Limit, LimitReached
from provisioner.lib.refusals import ActionRefused
from provisioner.limits import admission
from provisioner.limits.prospects import refusals_of
from provisioner.limits.queries import limits_of_sites
from provisioner.limits.tallies import Tallies
from provisioner.sites.models import Site, SiteCapacity
from provisioner.workspaces.models import Workspace
from tests.support.factories import SnapshotFactory, TemplateFactory, UserFactory
from tests.support.requests import workspace_create

GIB = 2**30


@pytest.fixture
def site(snapshot: Snapshot) -> Site:
    return snapshot.template.site


def measured(site: Site, *, minutes_ago: float = 1, **fields: Any) -> SiteCapacity:
    """Write what a worker would have measured: 1 TiB, half of it used."""
    at = timezone.now() - dt.timedelta(minutes=minutes_ago)
    facts = {
        "ontap_version": "9.16.1",
        "aggregate_size_bytes": 1024 * GIB,
        "aggregate_used_bytes": 512 * GIB,
        "aggregate_available_bytes": 512 * GIB,
        "measured_at": at,
    }
    capacity, _ = SiteCapacity.objects.update_or_create(
        site=site, defaults={**facts, **fields}
    )
    return capacity


def change(row: Any, **fields: Any) -> None:
    type(row).objects.filter(pk=row.pk).update(**fields)
    row.refresh_from_db()


def ask(by: User, snapshot: Snapshot, **fields: Any) -> Workspace:
    """Ask for a workspace; each time for another one."""
    template = Template.objects.get(pk=snapshot.template_id)
    key = f"key{Workspace.objects.count()}"
    return workspace_create(
        by=User.objects.get(pk=by.pk), template=template, request_key=key, **fields
    )


def refused(by: User, snapshot: Snapshot, **fields: Any) -> LimitReached:
    """Ask for a workspace that must be refused, and leave nothing behind."""
    before = (Workspace.objects.count(), ProcrastinateJob.objects.count())
    with pytest.raises(LimitReached) as caught:
        ask(by, snapshot, **fields)
    assert (Workspace.objects.count(), ProcrastinateJob.objects.count()) == before
    return caught.value


def put_into(workspace: Workspace, state: str) -> None:
    """Write the state that a workspace would have come to."""
    now = timezone.now()
    times: dict[str, Any] = {}
    if state in ("trashed", "purging"):
        times = {"trashed_at": now, "purge_at": now, "ready_at": now}
    if state == "retired":
        times = {"retired_at": now}
    if state in ("ready", "retiring", "restoring"):
        times = {"ready_at": now}
    if state == "failed":
        times = {"status_code": "x"}
    change(workspace, state=state, **times)


# --- people


def test_a_person_may_have_as_many_as_the_quota_says(
    alice: User, snapshot: Snapshot
) -> None:
    change(alice, max_workspaces=2)
    ask(alice, snapshot)
    ask(alice, snapshot)

    refusal = refused(alice, snapshot)

    assert refusal.code == "quota_workspaces"
    assert refusal.sentence == (
        "You have 2 of the 2 workspaces that you may have. Retire one that you do not "
        "need, or ask an administrator for more."
    )


@pytest.mark.parametrize("state", Workspace.State.values)
def test_what_is_put_away_leaves_its_place(
    state: str, alice: User, snapshot: Snapshot
) -> None:
    change(alice, max_workspaces=1)
    put_into(ask(alice, snapshot), state)

    if state in ("trashed", "purging", "retired"):
        ask(alice, snapshot)
    else:
        assert refused(alice, snapshot).code == "quota_workspaces"


@pytest.mark.parametrize("state", ["ready", "trashed"])
def test_bytes_count_in_the_trash_too(
    state: str, alice: User, snapshot: Snapshot
) -> None:
    change(alice, max_unique_bytes=10 * GIB)
    workspace = ask(alice, snapshot)
    put_into(workspace, state)
    change(workspace, unique_bytes=10 * GIB)

    refusal = refused(alice, snapshot)

    assert refusal.code == "quota_bytes"
    assert "10 GiB of the 10 GiB" in refusal.sentence


def test_what_was_not_measured_yet_takes_nothing(
    alice: User, snapshot: Snapshot
) -> None:
    change(alice, max_unique_bytes=1)
    ask(alice, snapshot)
    ask(alice, snapshot)


def test_a_team_shares_its_quota(alice: User, carol: User, snapshot: Snapshot) -> None:
    team = Team.objects.create(name="Rendering", max_workspaces=2)
    for person in (alice, carol):
        change(person, team=team)
        ask(person, snapshot)

    refusal = refused(alice, snapshot)

    assert refusal.code == "team_quota_workspaces"
    assert refusal.sentence.startswith("Your team Rendering has 2 of the 2 workspaces")
    ask(UserFactory.create(), snapshot)


def test_a_team_shares_its_bytes(alice: User, carol: User, snapshot: Snapshot) -> None:
    team = Team.objects.create(name="Rendering", max_unique_bytes=5)
    for person in (alice, carol):
        change(person, team=team)
    change(ask(carol, snapshot), unique_bytes=7)

    assert refused(alice, snapshot).code == "team_quota_bytes"


def test_asking_again_for_the_same_is_not_one_more(
    alice: User, snapshot: Snapshot
) -> None:
    change(alice, max_workspaces=1)
    first = workspace_create(by=alice, template=snapshot.template, request_key="k")
    again = workspace_create(by=alice, template=snapshot.template, request_key="k")

    assert first == again


# --- ONTAP's limits


def test_a_volume_has_room_for_so_many_clones(
    alice: User, snapshot: Snapshot, site: Site
) -> None:
    change(site, clones_per_volume=2)
    put_into(ask(alice, snapshot), "trashed")
    put_into(ask(alice, snapshot), "retired")
    ask(alice, SnapshotFactory.create(template=snapshot.template))

    refusal = refused(alice, snapshot)

    assert refusal.code == "clone_limit"
    assert refusal.sentence.startswith("The template “main” has 2 of the 2 clones")


def test_clones_of_others_take_places_too(
    alice: User, snapshot: Snapshot, site: Site
) -> None:
    change(site, clones_per_volume=4)
    change(snapshot.template, clones_of_others=3)
    ask(alice, snapshot)

    assert refused(alice, snapshot).code == "clone_limit"


def test_a_snapshot_has_room_for_so_many_clones(
    alice: User, snapshot: Snapshot, site: Site
) -> None:
    change(site, clones_per_volume=3)
    change(snapshot, clones_of_others=3)

    refusal = refused(alice, snapshot)

    assert refusal.code == "snapshot_clone_limit"
    ask(alice, SnapshotFactory.create(template=snapshot.template))


@pytest.mark.parametrize(
    ("version", "allowed"), [("9.16.1", 32_767), ("", 32_767), ("8.2.5", 255)]
)
def test_the_release_says_how_many_clones_there_can_be(
    version: str, allowed: int
) -> None:
    assert admission.clones_allowed_by(version) == allowed


@pytest.mark.parametrize(
    ("of_site", "of_svm"), [(3, None), (None, 3), (3, 100), (100, 3)]
)
def test_an_svm_has_room_for_so_many_volumes(
    of_site: int | None, of_svm: int | None, alice: User, snapshot: Snapshot, site: Site
) -> None:
    change(site, volumes_per_svm=of_site)
    change(snapshot.template, state=Template.State.READY)
    measured(site, volumes=77, volumes_of_others=1, max_volumes=of_svm)
    ask(alice, snapshot)

    refusal = refused(alice, snapshot)

    assert refusal.code == "volume_limit"
    assert "has 3 of the 3 volumes" in refusal.sentence


# --- space


def test_some_of_the_aggregate_stays_free(
    alice: User, snapshot: Snapshot, site: Site
) -> None:
    change(site, free_percent=10)
    measured(site, aggregate_used_bytes=921 * GIB)
    ask(alice, snapshot)
    measured(site, aggregate_used_bytes=922 * GIB)

    refusal = refused(alice, snapshot)

    assert refusal.code == "space_low"
    assert "922 GiB in use, of 921.6 GiB" in refusal.sentence


def test_files_count_against_what_a_volume_of_that_size_can_have(
    snapshot: Snapshot, site: Site
) -> None:
    """More inodes are given by themselves up to that, so nobody has to look before."""
    template = snapshot.template
    change(template, state=Template.State.READY, volume_uuid="v")
    assert inode_limits(site) == []

    change(template, actual_size_bytes=GIB, used_inodes=250_000, max_inodes=262_144)
    [limit] = inode_limits(site)
    assert (limit.subject, limit.used, limit.allowed) == (template.name, 250_000, 2**18)
    assert limit.is_near


def inode_limits(site: Site) -> list[Limit]:
    known = admission.known_of({site: None})[site.pk]
    limits = admission.all_limits_of_site(known, Tallies())
    return [limit for limit in limits if limit.code == "inode_limit"]


def test_sizes_may_be_promised_up_to_a_share(
    alice: User, snapshot: Snapshot, site: Site
) -> None:
    change(site, overcommit_percent=200)
    change(snapshot.template, volume_size_bytes=100 * GIB)
    measured(site, provisioned_bytes=1849 * GIB)
    ask(alice, snapshot)

    # The new one is promised before anybody measures it.
    refusal = refused(alice, snapshot)

    assert refusal.code == "overcommitted"
    assert "may already grow to 1.9 TiB, of 2 TiB" in refusal.sentence


@pytest.mark.parametrize(
    ("purpose", "of_template", "free", "is_refused"),
    [
        ("development", None, 120, False),
        ("development", None, 119, True),
        ("development", 50, 149, True),  # the template's own goes before
        ("build", None, 200, False),
        ("build", 50, 199, True),
    ],
)
def test_the_headroom_of_clones_is_promised(
    purpose: str,
    of_template: int | None,
    free: int,
    is_refused: bool,
    alice: User,
    snapshot: Snapshot,
    site: Site,
) -> None:
    change(site, overcommit_percent=200)
    change(snapshot.template, volume_size_bytes=100 * GIB)
    VolumePolicy.objects.create(
        site=site, headroom_percent=20, build_headroom_percent=100
    )
    if of_template:
        VolumePolicy.objects.create(
            site=site, template=snapshot.template, headroom_percent=of_template
        )
    measured(site, provisioned_bytes=(2048 - free) * GIB)
    places = {snapshot.pk: site}
    capacities = {site: SiteCapacity.objects.get(site=site)}

    if is_refused:
        assert refused(alice, snapshot, purpose=purpose).code == "overcommitted"
        return
    assert not refusals_of([snapshot], places=places, measured=capacities)
    ask(alice, snapshot, purpose=purpose)
    # What was promised since the measurement has its headroom, too.
    used = next(x for x in admission.site_limits(site) if x.code == "overcommitted")
    assert used.used == 2048 * GIB


def test_an_old_measurement_of_space_refuses_nobody_and_says_so(
    alice: User, snapshot: Snapshot, site: Site
) -> None:
    change(site, overcommit_percent=100)
    full = {"aggregate_used_bytes": 1024 * GIB, "provisioned_bytes": 9000 * GIB}
    measured(site, minutes_ago=16, **full)

    ask(alice, snapshot)

    space = next(x for x in admission.site_limits(site) if x.code == "space_low")
    assert (space.used_text, space.percent) == ("not measured", None)
    assert space.as_of is not None


def test_a_site_that_was_never_measured_refuses_nobody(
    alice: User, snapshot: Snapshot, site: Site
) -> None:
    change(site, overcommit_percent=100)
    ask(alice, snapshot)
    SiteCapacity.objects.create(site=site, status_message="No answer.")
    ask(alice, snapshot)


# --- builds


@pytest.mark.parametrize("ours", [True, False])
def test_a_volume_has_room_for_so_many_snapshots(
    ours: bool, admin: User, snapshot: Snapshot, site: Site
) -> None:
    template = snapshot.template
    change(site, snapshots_per_volume=2)
    change(template, state=Template.State.READY)
    if ours:
        SnapshotFactory.create(template=template)
        SnapshotFactory.create(template=template, deleted_at=timezone.now())
    else:
        change(template, snapshots_in_volume=2)

    with pytest.raises(LimitReached) as caught:
        template_build(by=admin, template=template)

    assert caught.value.code == "snapshot_limit"
    assert not Operation.objects.exists()


def test_a_first_build_needs_a_volume(
    admin: User, template: Template, snapshot: Snapshot
) -> None:
    change(template.site, volumes_per_svm=1)
    measured(template.site, volumes_of_others=1)

    with pytest.raises(LimitReached) as caught:
        template_build(by=admin, template=template)

    assert caught.value.code == "volume_limit"
    change(template, state=Template.State.READY)
    template_build(by=admin, template=template)


# --- what is told


def test_a_refusal_says_how_near_the_others_are(
    alice: User, snapshot: Snapshot, site: Site
) -> None:
    change(alice, max_workspaces=0, max_unique_bytes=100)
    measured(site)

    refusal = refused(alice, snapshot)

    told = {limit.code: limit for limit in refusal.limits}
    assert list(told) == [
        "quota_workspaces",
        "quota_bytes",
        "clone_limit",
        "snapshot_clone_limit",
        "volume_limit",
        "space_low",
        "overcommitted",
    ]
    assert refusal.limit is told["quota_workspaces"]
    assert told["space_low"].percent == 52
    assert told["volume_limit"].allowed_text == "no limit"


def test_each_limit_has_its_own_code_and_sentence() -> None:
    limit = Limit(code="", subject="Munich", used=1, allowed=1)
    sentences = {refusal(limit).sentence for refusal in REFUSALS.values()}
    assert len(sentences) == len(REFUSALS)
    assert all("{" not in sentence for sentence in sentences)
    titles = {limit._replace(code=code).title for code in REFUSALS}
    assert len(titles) == len(REFUSALS)
    assert all(title and "{" not in title for title in titles)


@pytest.mark.parametrize(
    ("used", "allowed", "needed", "reached"),
    [
        (4, 5, 1, False),
        (5, 5, 1, True),
        (0, 0, 1, True),
        (3, 5, 3, True),
        (None, 5, 1, False),
        (5, None, 1, False),
    ],
)
def test_a_limit_is_reached_where_one_more_does_not_fit(
    used: int | None, allowed: int | None, needed: int, reached: bool
) -> None:
    limit = Limit(code="", subject="", used=used, allowed=allowed, needed=needed)
    assert limit.is_reached == reached


# --- two at once


@pytest.mark.parametrize("limit", ["user", "team", "site"])
@pytest.mark.django_db(transaction=True)
def test_two_cannot_take_the_last_place(limit: str, jobs_emptied: None) -> None:
    snapshot = SnapshotFactory.create()
    people = [UserFactory.create() for _ in range(2)]
    if limit == "user":
        people = [people[0], people[0]]
        change(people[0], max_workspaces=1)
    elif limit == "team":
        team = Team.objects.create(name="Rendering", max_workspaces=1)
        for person in people:
            change(person, team=team)
        other_site = SnapshotFactory.create()
    else:
        change(snapshot.template.site, clones_per_volume=1)
    snapshots = [snapshot, other_site if limit == "team" else snapshot]

    def get(number: int) -> str:
        try:
            workspace_create(
                by=people[number % 2],
                template=snapshots[number % 2].template,
                request_key=str(number),
            )
        except ActionRefused as refusal:
            return refusal.code
        else:
            return "made"
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        answers = sorted(pool.map(get, range(6)))

    code = {"user": "quota_workspaces", "team": "team_quota_workspaces"}
    assert answers == sorted(["made"] + [code.get(limit, "clone_limit")] * 5)
    assert Workspace.objects.count() == 1


def test_the_overview_counts_as_who_refuses_does(
    alice: User, carol: User, snapshot: Snapshot, site: Site
) -> None:
    measured(site, volumes_of_others=7)
    other = SnapshotFactory.create(
        template=TemplateFactory.create(site=site, name="other")
    )
    TemplateFactory.create(site=site, name="not-built", state=Template.State.NEW)
    elsewhere = SnapshotFactory.create()
    assert elsewhere.template.site != site
    for of in (snapshot, other):
        change(of.template, state=Template.State.READY)
    for at, (who, of) in enumerate(
        [(alice, snapshot), (carol, snapshot), (alice, other), (alice, elsewhere)]
    ):
        put_into(ask(who, of), ["ready", "retired", "trashed", "ready"][at])

    (of_site,) = (one for one in limits_of_sites(Tallies()) if one.site == site)
    told = {(one.code, one.subject): one.used for one in of_site.limits}

    checked = [
        *admission.site_limits(site),
        *(admission.snapshot_limit(of.template) for of in (snapshot, other)),
    ]
    assert [told[one.code, one.subject] for one in checked] == [
        one.used for one in checked
    ]
    clones = {
        name: used for (code, name), used in told.items() if code == "clone_limit"
    }
    assert clones == {snapshot.template.name: 1, "other": 1}
    volumes = next(one for one in checked if one.code == "volume_limit")
    assert volumes.used == 2 + 2 + 7
