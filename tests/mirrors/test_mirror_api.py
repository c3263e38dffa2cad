"""Mirrors by API."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.audit_log.queries import events_visible_to
from provisioner.catalog.models import Snapshot, Template
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation
from provisioner.mirrors.models import Mirror
from provisioner.sites.models import Site
from tests.support.factories import (
    MirroredSnapshotFactory,
    MirrorFactory,
    SiteFactory,
    SnapshotFactory,
)

MIRRORS = "/api/v1/mirrors"


@pytest.fixture
def site(snapshot: Snapshot) -> Site:
    server = snapshot.template.site.perforce_server
    return SiteFactory.create(name="far", svm="svm_far", perforce_server=server)


@pytest.fixture
def mirror(snapshot: Snapshot, site: Site) -> Mirror:
    made = MirrorFactory.create(template=snapshot.template, site=site)
    MirroredSnapshotFactory.create(mirror=made, snapshot=snapshot)
    return made


def test_an_administrator_creates_changes_and_deletes(
    api_as_admin: APIClient, snapshot: Snapshot, site: Site, connectable: None
) -> None:
    asked = {"template": "main", "site": "far", "keep": 4, "aggregate": "aggr1"}
    Site.objects.filter(pk=site.pk).update(volumes_per_svm=0)
    refused = api_as_admin.post(MIRRORS, asked)
    assert (refused.status_code, refused.json()["code"]) == (409, "volume_limit")
    assert not Mirror.objects.exists()
    Site.objects.filter(pk=site.pk).update(volumes_per_svm=1)

    made = api_as_admin.post(MIRRORS, asked)

    body = made.json()
    assert (made.status_code, body["state"], body["keep"]) == (202, "creating", 4)
    where = f"{MIRRORS}/{body['id']}"
    assert made["Location"].endswith(where)
    assert body["figures"]["newest"] is None
    again = api_as_admin.post(MIRRORS, asked)
    assert (again.status_code, again.json()["code"]) == (409, "mirror_exists")
    assert api_as_admin.delete(where).json()["code"] == "mirror_busy"

    changed = api_as_admin.patch(where, {"start": "by-hand", "throttle_kilobytes": 9})

    assert (changed.json()["start"], changed.json()["throttle_kilobytes"]) == (
        *("by-hand",),
        9,
    )
    operation = Mirror.objects.get().operations.get()
    engine_states.end_operation(operation, Operation.State.SUCCEEDED)
    Mirror.objects.update(
        state=Mirror.State.READY, volume_uuid="v", relationship_uuid="r"
    )
    gone = api_as_admin.delete(where)
    assert (gone.status_code, gone.json()["kind"]) == (202, "mirror_delete")
    assert gone.json()["mirror"] == body["id"]


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"template": "other"}, 400, "invalid"),
        ({"site": "other"}, 400, "invalid"),
        ({"keep": 0}, 400, "invalid"),
        ({"start": "later"}, 400, "invalid"),
        ({"start": "schedule"}, 400, "invalid"),
        ({"start": "schedule", "cron": "0 3 * *"}, 400, "invalid"),
        ({"throttle_kilobytes": "9"}, 400, "invalid"),
        ({"site": "home"}, 409, "mirror_site_unfit"),
    ],
)
def test_what_makes_no_sense_is_refused(
    api_as_admin: APIClient,
    site: Site,
    snapshot: Snapshot,
    changes: dict[str, Any],
    status: int,
    code: str,
) -> None:
    Site.objects.filter(pk=snapshot.template.site_id).update(name="home")

    answer = api_as_admin.post(MIRRORS, {"template": "main", "site": "far", **changes})

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert not Mirror.objects.exists()


def test_everybody_sees_what_is_there(api_as_carol: APIClient, mirror: Mirror) -> None:
    SnapshotFactory.create(template=mirror.template, name="c120.b9", change=120)
    MirrorFactory.create(state="failed", status_code="x", failed_at="2026-11-01T00:00Z")

    for query in ("template=main", "site=far", "state=ready"):
        [listed] = api_as_carol.get(f"{MIRRORS}?{query}").json()["results"]
        assert listed == api_as_carol.get(f"{MIRRORS}/{mirror.pk}").json()
    figures = listed["figures"]
    assert figures["newest"]["change"] == 100
    assert (figures["has_default"], figures["snapshots_behind"]) == (False, 1)
    [there] = api_as_carol.get(f"{MIRRORS}/{mirror.pk}/snapshots").json()["results"]
    assert (there["state"], there["bytes"], there["seconds"]) == (
        *("available", 4096),
        2.0,
    )
    assert api_as_carol.get(f"{MIRRORS}?state=deleted").status_code == 400


def test_an_owner_transfers_a_snapshot_by_name_id_or_default(
    api_as_alice: APIClient, api_as_carol: APIClient, alice: User, mirror: Mirror
) -> None:
    Template.objects.filter(pk=mirror.template_id).update(owner=alice)
    later = SnapshotFactory.create(template=mirror.template, name="c120.b9", change=120)
    transfer = f"{MIRRORS}/{mirror.pk}/transfer"
    there = mirror.snapshots.get().snapshot

    assert api_as_carol.post(transfer, {}).json()["code"] == "not_allowed"
    assert (
        api_as_alice.post(transfer, {"snapshot": there.pk}).json()["code"]
        == "snapshot_mirrored"
    )
    nothing = api_as_alice.post(transfer, {"snapshot": "nope"})
    assert (nothing.status_code, nothing.json()["code"]) == (400, "invalid")
    started = api_as_alice.post(transfer, {"snapshot": later.name})

    assert (started.status_code, started.json()["kind"]) == (202, "mirror_transfer")
    assert f"/operations/{started.json()['id']}" in started["Location"]
    assert api_as_alice.post(transfer, {}).json()["code"] == "mirror_busy"


def test_an_administrator_retries_a_mirror_at_rest(
    api_as_admin: APIClient, api_as_carol: APIClient, carol: User, mirror: Mirror
) -> None:
    retry = f"{MIRRORS}/{mirror.pk}/retry"
    Mirror.objects.update(
        state="failed", status_code="x", failed_at="2026-11-01T00:00Z"
    )
    assert api_as_carol.post(retry).json()["code"] == "not_allowed"

    started = api_as_admin.post(retry)

    assert (started.status_code, started.json()["kind"]) == (202, "mirror_create")
    [event] = events_visible_to(carol).filter(subject_kind="mirror")
    assert event.message == "Retried."
    assert api_as_admin.post(retry).json()["code"] == "mirror_busy"


def test_a_promotion_and_a_way_back_are_previewed_and_begun(
    api_as_admin: APIClient, mirror: Mirror
) -> None:
    where = f"{MIRRORS}/{mirror.pk}"
    later = SnapshotFactory.create(template=mirror.template, name="c120.b9", change=120)

    seen = api_as_admin.get(f"{where}/promotion").json()

    assert [each["name"] for each in seen["lost"]] == [later.name]
    assert (seen["obstacle"], seen["snapshots_behind"]) == ("", 1)
    begun = api_as_admin.post(f"{where}/promote")
    assert (begun.status_code, begun.json()["kind"]) == (202, "mirror_promote")
    again = api_as_admin.post(f"{where}/promote")
    assert (again.status_code, again.json()["code"]) == (409, "mirror_busy")
    not_yet = api_as_admin.post(f"{where}/re-establish")
    assert not_yet.json()["code"] == "not_a_former_home"
    operation = mirror.operations.get()
    engine_states.end_operation(operation, Operation.State.SUCCEEDED)
    Mirror.objects.update(state=Mirror.State.FORMER, is_former_home=True)
    back = api_as_admin.get(f"{where}/way-back").json()
    assert back["common"]["change"] == 100
    given_up = api_as_admin.post(f"{where}/give-up")
    assert given_up.json()["kind"] == "mirror_give_up"
