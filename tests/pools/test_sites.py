"""Warm pools at the sites of mirrors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import transaction

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot, Template
from provisioner.gateways import registry
from provisioner.lib.limits import LimitReached
from provisioner.lib.refusals import InvalidRequest
from provisioner.limits.admission import check_pooling
from provisioner.mirrors.actions import mirror_create, mirror_delete, move_home
from provisioner.mirrors.models import Mirror
from provisioner.mirrors.refusals import MirrorInUse
from provisioner.pools import queries as pool_queries
from provisioner.pools.models import Pool
from provisioner.pools.refusals import PoolExists
from provisioner.pools.sweeps import sweep_pools
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace
from tests.support.browsers import browser_of
from tests.support.factories import (
    MirroredSnapshotFactory,
    MirrorFactory,
    SiteFactory,
    SnapshotFactory,
    UserFactory,
)
from tests.support.jobs import settle
from tests.support.requests import workspace_create
from tests.support.two_sites import far_site, lab
from tests.support.warm_pools import filled, finish, make_pool

__all__ = ["far_site", "lab"]

W = Workspace.State


@pytest.fixture
def mirror(snapshot: Snapshot) -> Mirror:
    """A mirror with the template's default snapshot."""
    mirror = MirrorFactory.create(template=snapshot.template)
    MirroredSnapshotFactory.create(mirror=mirror, snapshot=snapshot)
    return mirror


@pytest.fixture
def pool(ci: User, mirror: Mirror) -> Pool:
    return make_pool(mirror.template, ci, size=2, site=mirror.site)


def promote(mirror: Mirror, *, by: User) -> Template:
    """Make a mirror the home, as the last step of a promotion does."""
    Template.objects.filter(pk=mirror.template_id).update(volume_uuid="old")
    Mirror.objects.filter(pk=mirror.pk).update(state=Mirror.State.PROMOTING)
    with transaction.atomic():
        move_home(mirror, by=by)
    return Template.objects.select_related("site").get(pk=mirror.template_id)


def test_requests_for_each_site_claim_from_the_pool_there(
    pool: Pool, ci: User, mirror: Mirror
) -> None:
    at_home = make_pool(mirror.template, ci, size=2)
    for each in (at_home, pool):
        filled(each)

    there = workspace_create(
        by=ci, template=mirror.template, site=mirror.site, purpose="ci"
    )
    here = workspace_create(by=ci, template=mirror.template, purpose="ci")

    assert (there.site, there.pool, there.is_warm) == (mirror.site, pool, True)
    assert (here.site, here.pool) == (mirror.template.site, at_home)
    assert here.is_warm


def test_a_pool_gets_what_has_arrived_at_its_site(
    pool: Pool, snapshot: Snapshot
) -> None:
    newer = SnapshotFactory.create(template=pool.template)

    members = filled(pool)

    assert {member.snapshot for member in members} == {snapshot}
    MirroredSnapshotFactory.create(mirror=Mirror.objects.get(), snapshot=newer)
    sweep_pools(timestamp=0)
    made = pool_queries.members_of(pool).filter(state=W.PROVISIONING)
    assert {member.snapshot for member in made} == {newer}


def test_limits_of_its_own_site_count(pool: Pool, snapshot: Snapshot) -> None:
    Site.objects.filter(pk=pool.site_id).update(clones_per_volume=1)
    pool.refresh_from_db()

    filled(pool)
    with pytest.raises(LimitReached) as refused:
        check_pooling(
            template=pool.template,
            snapshot=snapshot,
            site=pool.site,
            purpose=pool.purpose,
        )

    assert refused.value.limit.code == "clone_limit"
    assert pool_queries.members_of(pool).count() == 1


def test_a_pool_is_only_where_the_template_is(pool: Pool, ci: User) -> None:
    with pytest.raises(InvalidRequest, match="has no mirror at"):
        make_pool(pool.template, ci, size=1, site=SiteFactory.create())
    with pytest.raises(PoolExists, match=f"at {pool.site.name} for ci"):
        make_pool(pool.template, ci, size=1, site=pool.site)
    assert Pool.objects.get() == pool


def test_a_pool_follows_its_template_to_another_home(
    ci: User, mirror: Mirror, admin: User
) -> None:
    """What is left behind at the old home is handed out to nobody."""
    pool, old = make_pool(mirror.template, ci, size=2), mirror.template.site
    left = {member.pk for member in filled(pool)}

    template = promote(mirror, by=admin)

    got = workspace_create(by=ci, template=template, purpose="ci")
    assert (got.site, got.is_warm) == (mirror.site, False)
    finish(got)
    sweep_pools(timestamp=0)
    pool.refresh_from_db()
    assert pool.site == mirror.site
    moved = Event.objects.get(kind="pool_moved")
    assert moved.data == {"site": {"from": old.name, "to": mirror.site.name}}
    assert "the new home of" in moved.message
    sweep_pools(timestamp=0)
    leaving = Workspace.objects.filter(state=W.RETIRING)
    assert set(leaving.values_list("pk", flat=True)) == left
    made = pool_queries.members_of(pool).filter(state=W.PROVISIONING)
    assert {member.site for member in made} == {mirror.site}


def test_a_pool_of_its_kind_at_the_new_home_takes_its_place(
    pool: Pool, ci: User, mirror: Mirror, admin: User
) -> None:
    there = filled(pool)
    other = make_pool(mirror.template, ci, size=2)

    promote(mirror, by=admin)
    sweep_pools(timestamp=0)

    assert Pool.objects.get() == pool
    ended = Event.objects.get(kind="pool_ended")
    assert ended.subject_id == other.pk
    assert "which has such a pool" in ended.message
    ready = pool_queries.members_of(pool).filter(state=W.READY)
    assert set(ready) == set(there)


def test_a_pool_ends_with_its_mirror(pool: Pool, mirror: Mirror, admin: User) -> None:
    members = filled(pool)
    with pytest.raises(MirrorInUse, match="warm pools there"):
        mirror_delete(by=admin, mirror=mirror)
    Mirror.objects.update(state=Mirror.State.DELETED)

    sweep_pools(timestamp=0)

    assert not Pool.objects.exists()
    ended = Event.objects.get(kind="pool_ended")
    assert ended.message == f"main has no mirror at {mirror.site.name} any more."
    leaving = Workspace.objects.filter(state=W.RETIRING)
    assert set(leaving) == set(members)


def test_pages_show_pools_by_site(pool: Pool, admin: User, alice: User) -> None:
    make_pool(pool.template, pool.owner, size=1)
    address = f"/templates/{pool.template_id}/?more=1"

    page = browser_of(admin).get(address).text

    section = page[page.index('id="pools"') :]
    assert section.index(pool.template.site.name) != section.index(pool.site.name)
    assert "0 of 2" in section
    assert 'id="pools"' not in browser_of(alice).get(address).text


@pytest.mark.integration
def test_a_pool_at_the_far_site_of_the_lab(
    built_template: Template, far_site: Site, run_jobs: Callable[[], None]
) -> None:
    ci = UserFactory.create(username="ci", uid=20007, gid=20000, is_service=True)
    admin = User.objects.filter(is_staff=True).latest("pk")
    settle(mirror_create(by=admin, template=built_template, site=far_site))
    pool = make_pool(built_template, ci, size=1, purpose="ci-edit", site=far_site)
    sweep_pools(timestamp=0)
    run_jobs()

    got = workspace_create(
        by=ci, template=built_template, site=far_site, purpose="ci-edit"
    )

    assert (got.is_warm, got.site, got.pool) == (True, far_site, pool)
    assert (got.path / "Makefile").stat().st_uid == ci.uid
    assert registry.ontap(far_site).find_volume(got.volume_name) is not None
