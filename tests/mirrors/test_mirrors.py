"""A snapshot at another site, by a real worker between two clusters of the lab."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.dependents import needed_by
from provisioner.catalog.models import Template
from provisioner.engine.models import Operation, Step
from provisioner.engine.sweeps.watchdog import watchdog
from provisioner.gateways.ontap.polling import wait_until
from provisioner.lab.ontap import records
from provisioner.lab.ontap.server import OntapConfig
from provisioner.lib import clocks
from provisioner.lib.refusals import ActionRefused, InvalidRequest
from provisioner.limits import sweeps as limit_sweeps
from provisioner.limits.admission import known_of
from provisioner.mirrors.actions import mirror_create, mirror_retry, mirror_transfer
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.mirrors.steps import prerequisites
from provisioner.sites.models import AggregateSpace, Site, SiteCapacity
from tests.support.factories import SiteFactory
from tests.support.mirrors import MirrorScene
from tests.support.ontap_rest import rest_to

RELATIONSHIPS = "/api/snapmirror/relationships"


def mirrored(scene: MirrorScene) -> Mirror:
    """Return a mirror that has the first snapshot."""
    mirror = scene.settled(
        mirror_create(by=scene.by, template=scene.template, site=scene.site)
    )
    assert mirror.state == Mirror.State.READY, mirror.status_message
    return mirror


def transfers(scene: MirrorScene) -> list[str]:
    """Return the states of all transfers there were."""
    return [row.state for row in scene.labs.rows(records.Transfer)]


def test_a_template_is_mirrored_with_the_snapshot_that_people_get(
    mirror_scene: MirrorScene,
) -> None:
    mirror = mirrored(mirror_scene)

    copy = mirror.snapshots.get()
    assert (copy.state, copy.snapshot.name) == ("available", "c100.b1")
    assert copy.bytes > 0
    there = mirror_scene.labs.there
    found = there.find_snapshot_version(mirror.volume_uuid, name="c100.b1")
    assert found is not None
    assert found.uuid == copy.ontap_uuid
    related = there.get_relationship(mirror.relationship_uuid)
    assert (related.state, related.policy) == ("snapmirrored", "cloneyard-keep-10")
    told = Event.objects.filter(subject_kind="mirror", subject_id=mirror.pk)
    assert [event.message for event in told.order_by("pk")] == [
        f"Mirror {mirror.template.name} to bangalore.",
        "Ready.",
        "Transfer c100.b1.",
        "c100.b1 is available at bangalore. Only its version was compared: no worker "
        "there could read its files.",
    ]
    [needs] = needed_by(mirror.template)
    assert needs.words == "1 mirror"


def test_the_next_snapshot_is_transferred_alone(mirror_scene: MirrorScene) -> None:
    mirror = mirrored(mirror_scene)
    mirror_scene.publish("c101.b2")
    newest = mirror_scene.publish("c102.b3")

    mirror_transfer(by=mirror_scene.by, mirror=mirror, snapshot=newest)

    assert mirror_scene.settled(mirror).state == Mirror.State.READY
    names = {
        each.name for each in mirror_scene.labs.there.list_snapshots(mirror.volume_uuid)
    }
    assert names == {"c100.b1", "c102.b3"}
    with pytest.raises(ActionRefused) as refused:
        mirror_transfer(by=mirror_scene.by, mirror=mirror, snapshot=newest)
    assert refused.value.code == "snapshot_mirrored"


@pytest.mark.parametrize(
    "path",
    [
        "/api/storage/volumes*",
        "/api/snapmirror/policies*",
        RELATIONSHIPS,
        "*/transfers*",
    ],
)
def test_a_lost_reply_leads_to_the_snapshot_and_doubles_nothing(
    path: str, mirror_scene: MirrorScene
) -> None:
    if "policies" in path:
        for row in mirror_scene.labs.destination.lab.array.store.select(
            records.SnapmirrorPolicy, name="cloneyard-keep-10"
        ):
            mirror_scene.labs.destination.lab.array.store.remove(row)
    mirror_scene.labs.destination.control.set_faults(
        {"method": "POST", "path": path, "drop": True, "when": "after", "times": 1}
    )

    mirror = mirrored(mirror_scene)

    assert mirror.snapshots.get().state == MirroredSnapshot.State.AVAILABLE
    assert len(mirror_scene.labs.rows(records.Relationship)) == 1
    assert transfers(mirror_scene) == ["success"]
    assert Step.objects.filter(attempt=2).count() == 1


def test_what_is_there_already_is_not_transferred_again(
    mirror_scene: MirrorScene,
) -> None:
    mirror = mirrored(mirror_scene)
    copy = mirror.snapshots.get()
    snapshot = copy.snapshot
    copy.delete()  # the row of a worker that was killed, or a restored database

    mirror_transfer(by=mirror_scene.by, mirror=mirror, snapshot=snapshot)

    assert mirror_scene.settled(mirror).state == Mirror.State.READY
    assert mirror.snapshots.get().ontap_uuid == copy.ontap_uuid
    assert transfers(mirror_scene) == ["success"]


def test_a_snapshot_of_that_name_that_is_another_is_refused(
    mirror_scene: MirrorScene,
) -> None:
    mirror = mirrored(mirror_scene)
    copy = mirror.snapshots.get()
    snapshot = copy.snapshot
    copy.delete()
    relationship = mirror_scene.labs.source.lab.array.store.select(records.Destination)
    for row in relationship:
        mirror_scene.labs.source.lab.array.store.remove(row)
    source = mirror_scene.labs.source.gateway
    volume_uuid = mirror_scene.template.volume_uuid
    source.delete_snapshot(volume_uuid, snapshot_uuid=snapshot.ontap_uuid)
    source.create_snapshot(volume_uuid, name=snapshot.name, comment="")

    mirror_transfer(by=mirror_scene.by, mirror=mirror, snapshot=snapshot)

    failed = mirror_scene.settled(mirror)
    assert failed.status_code == "mirrored_snapshot_differs"
    assert mirror.snapshots.get().state == MirroredSnapshot.State.FAILED


def test_an_aborted_transfer_is_told_and_can_be_tried_again(
    mirror_scene: MirrorScene,
) -> None:
    labs = mirror_scene.labs
    labs.destination.control.set_settings(transfer_seconds=30.0)
    mirror = mirror_create(
        by=mirror_scene.by, template=mirror_scene.template, site=mirror_scene.site
    )

    def abort() -> None:
        def running() -> records.Transfer | None:
            rows = labs.rows(records.Transfer)
            return next((row for row in rows if row.state == "transferring"), None)

        row = wait_until(running, limit_seconds=20)
        assert row is not None
        labs.there.abort_transfer(row.relationship_uuid, transfer_uuid=row.uuid)

    aborting = threading.Thread(target=abort)
    aborting.start()
    mirror = mirror_scene.settled(mirror)
    aborting.join()

    assert (mirror.state, mirror.status_code) == ("failed", "mirror_transfer_aborted")
    assert "aborted" in mirror.status_message
    copy = mirror.snapshots.get()
    assert copy.state == MirroredSnapshot.State.FAILED
    labs.destination.control.set_settings(transfer_seconds=0.0)
    mirror_transfer(by=mirror_scene.by, mirror=mirror, snapshot=copy.snapshot)
    assert mirror_scene.settled(mirror).state == Mirror.State.READY
    copy.refresh_from_db()
    assert copy.state == MirroredSnapshot.State.AVAILABLE


def test_without_peering_it_says_what_an_administrator_enters_where(
    mirror_scene: MirrorScene,
) -> None:
    control = mirror_scene.labs.destination.control
    mirror = mirror_create(
        by=mirror_scene.by, template=mirror_scene.template, site=mirror_scene.site
    )
    control.set_settings(svm_peering=False)

    mirror = mirror_scene.settled(mirror)

    assert (mirror.state, mirror.status_code) == ("failed", "mirror_not_peered")
    assert "vserver peer create -vserver svm_far" in mirror.status_message
    assert mirror_scene.labs.there.find_volume(mirror.volume_name) is None
    control.set_settings(svm_peering=True)
    mirror_retry(by=mirror_scene.by, mirror=mirror)
    assert mirror_scene.settled(mirror).state == Mirror.State.READY


@pytest.mark.parametrize(
    ("states", "code", "command"),
    [
        (("paused",), "mirror_paused", "snapmirror resume"),
        (("paused", "broken_off"), "mirror_broken_off", "snapmirror resync"),
    ],
)
def test_a_relationship_that_somebody_stopped_is_told_with_its_remedy(
    states: tuple[str, ...], code: str, command: str, mirror_scene: MirrorScene
) -> None:
    mirror = mirrored(mirror_scene)
    rest = rest_to(mirror_scene.labs.destination.lab)
    for state in states:
        rest.done(
            "PATCH", f"{RELATIONSHIPS}/{mirror.relationship_uuid}", {"state": state}
        )
    rest.session.close()
    newest = mirror_scene.publish("c101.b2")

    mirror_transfer(by=mirror_scene.by, mirror=mirror, snapshot=newest)

    failed = mirror_scene.settled(mirror)
    assert (failed.state, failed.status_code) == ("failed", code)
    assert command in failed.status_message
    assert transfers(mirror_scene) == ["success"]


@pytest.mark.parametrize("is_by_hand", [True, False])
def test_it_goes_where_it_is_told_or_where_there_is_room(
    is_by_hand: bool, mirror_scene: MirrorScene
) -> None:
    """The site's own aggregate has room for nothing."""
    scene, site = mirror_scene, mirror_scene.site
    AggregateSpace.objects.create(
        site=site,
        name="aggr2",
        size_bytes=1 << 40,
        available_bytes=1 << 40,
        measured_at=timezone.now(),
    )
    create = partial(mirror_create, by=scene.by, template=scene.template, site=site)
    control = scene.labs.destination.control
    control.set_settings(aggregate_bytes={site.aggregate: 0})
    with pytest.raises(ActionRefused, match=f"{site.aggregate} of bangalore has"):
        create()
    with pytest.raises(InvalidRequest, match="Choose one of: aggr1, aggr2"):
        create(aggregate="aggr9")
    site.spreads_templates = not is_by_hand
    site.save()

    mirror = scene.settled(create(aggregate="aggr2" if is_by_hand else ""))

    assert mirror.state == Mirror.State.READY, mirror.status_message
    seen = scene.labs.there.get_volume(mirror.volume_uuid).aggregate
    assert (mirror.aggregate, seen) == ("aggr2", "aggr2")
    # Its clones count there, also after somebody moved it.
    Mirror.objects.update(aggregate="")
    limit_sweeps.measure(site)
    measured = SiteCapacity(site=site, measured_at=timezone.now())
    known = known_of({site: measured})[site.pk]
    assert known.mirror_places == {mirror.template_id: "aggr2"}


def test_a_destination_without_room_is_told(mirror_scene: MirrorScene) -> None:
    mirror = mirror_create(
        by=mirror_scene.by, template=mirror_scene.template, site=mirror_scene.site
    )
    mirror_scene.labs.destination.control.set_settings(aggregate_is_full=True)

    mirror = mirror_scene.settled(mirror)

    assert (mirror.state, mirror.status_code) == ("failed", "space_low")
    assert "aggr1 of bangalore has 0 B free, and the template's" in (
        mirror.status_message
    )
    assert nothing_is_there(mirror_scene)


def nothing_is_there(scene: MirrorScene) -> bool:
    volumes = scene.labs.there.list_volumes(comment_prefix="cloneyard")
    return not volumes and scene.labs.rows(records.Relationship) == []


@pytest.mark.parametrize("end", ["source", "destination"])
def test_a_cluster_without_snapmirror_is_told_before_anything_is_made(
    end: str, mirror_scene: MirrorScene
) -> None:
    scene = mirror_scene
    where = {"source": "munich", "destination": "bangalore"}[end]
    mirror = mirror_create(by=scene.by, template=scene.template, site=scene.site)
    getattr(scene.labs, end).control.set_settings(snapmirror_license=False)

    mirror = scene.settled(mirror)

    assert (mirror.state, mirror.status_code) == ("failed", "mirror_not_licensed")
    assert f"ONTAP of {where} has no SnapMirror license." in mirror.status_message
    assert nothing_is_there(scene)
    getattr(scene.labs, end).control.set_settings(snapmirror_license=True)
    mirror_retry(by=scene.by, mirror=mirror)
    assert scene.settled(mirror).state == Mirror.State.READY


def test_a_mirror_whose_work_was_lost_says_so(mirror_scene: MirrorScene) -> None:
    mirror = mirror_create(
        by=mirror_scene.by, template=mirror_scene.template, site=mirror_scene.site
    )
    Operation.objects.update(
        state=Operation.State.CANCELED, ended_at=clocks.database_now()
    )

    watchdog(timestamp=0)

    mirror.refresh_from_db()
    assert mirror.state == Mirror.State.FAILED
    assert mirror.status_message


# --- refusals, before anything is made


@pytest.mark.parametrize("site", ["itself", "same SVM", "other Perforce server"])
def test_a_site_that_is_of_no_use_is_refused(
    site: str, snapshot: Any, admin: User
) -> None:
    template = snapshot.template
    home = template.site
    there = home
    if site == "same SVM":
        there = SiteFactory.create(perforce_server=home.perforce_server)
    elif site == "other Perforce server":
        there = SiteFactory.create(svm="svm_far")

    with pytest.raises(ActionRefused) as refused:
        mirror_create(by=admin, template=template, site=there)

    assert refused.value.code == "mirror_site_unfit"
    assert not Mirror.objects.exists()


@pytest.mark.parametrize(
    ("end", "lacking", "said"),
    [
        ("destination", {"svm_peering": False}, "vserver peer create -vserver svm_far"),
        ("destination", {"aggregate_is_full": True}, "of bangalore has 0 B free, and"),
        ("source", {"snapmirror_license": False}, "munich has no SnapMirror license."),
    ],
)
def test_what_ontap_lacks_is_said_before_anything_is_made(
    end: str, lacking: dict[str, Any], said: str, mirror_scene: MirrorScene
) -> None:
    scene = mirror_scene
    getattr(scene.labs, end).control.set_settings(**lacking)

    with pytest.raises(ActionRefused) as refused:
        mirror_create(by=scene.by, template=scene.template, site=scene.site)

    assert refused.value.code == "mirror_site_unfit"
    assert said in refused.value.sentence
    assert not Mirror.with_deleted.exists()
    assert nothing_is_there(scene)


def test_a_mirror_between_releases_that_do_not_connect_is_refused(
    mirror_scene: MirrorScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = mirror_scene
    release = property(lambda _config: (9, 10, 1))
    monkeypatch.setattr(OntapConfig, "version", release)

    with pytest.raises(ActionRefused, match=r"Upgrade it to 9\.11\.1 or newer"):
        mirror_create(by=scene.by, template=scene.template, site=scene.site)

    assert not Mirror.with_deleted.exists()


@pytest.mark.parametrize("end", ["munich", "bangalore"])
def test_a_mirror_is_refused_while_ontap_of_an_end_cannot_be_asked(
    end: str, mirror_scene: MirrorScene
) -> None:
    scene = mirror_scene
    Site.objects.filter(name=end).update(ontap_port=9)
    template = Template.objects.get(pk=scene.template.pk)

    with pytest.raises(ActionRefused, match=f"ONTAP of {end} was asked"):
        mirror_create(
            by=scene.by, template=template, site=Site.objects.get(pk=scene.site.pk)
        )

    assert not Mirror.with_deleted.exists()


def test_both_ends_are_asked_for_some_seconds_in_all(
    mirror_scene: MirrorScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = mirror_scene
    monkeypatch.setattr(prerequisites, "ALL_WITHIN_SECONDS", 0.0)

    with pytest.raises(ActionRefused, match="did not answer in time"):
        mirror_create(by=scene.by, template=scene.template, site=scene.site)

    assert not Mirror.with_deleted.exists()


def test_a_template_without_volume_is_not_mirrored(snapshot: Any, admin: User) -> None:
    template = snapshot.template
    Template.objects.update(volume_uuid="")
    site = SiteFactory.create(
        perforce_server=template.site.perforce_server, svm="svm_far"
    )

    with pytest.raises(ActionRefused, match="has no volume yet"):
        mirror_create(by=admin, template=template, site=site)


def test_only_administrators_mirror_and_only_once(
    snapshot: Any, admin: User, carol: User, jobs_emptied: None, connectable: None
) -> None:
    template = snapshot.template
    site = SiteFactory.create(
        perforce_server=template.site.perforce_server, svm="svm_far"
    )
    with pytest.raises(ActionRefused) as refused:
        mirror_create(by=carol, template=template, site=site)
    assert refused.value.code == "not_allowed"

    mirror = mirror_create(by=admin, template=template, site=site)

    with pytest.raises(ActionRefused) as refused:
        mirror_create(by=admin, template=template, site=site)
    assert refused.value.code == "mirror_exists"
    with pytest.raises(ActionRefused) as refused:
        mirror_transfer(by=admin, mirror=mirror, snapshot=snapshot)
    assert refused.value.code == "mirror_busy"
    with pytest.raises(ActionRefused) as refused:
        mirror_retry(by=carol, mirror=mirror)
    assert refused.value.code == "not_allowed"
