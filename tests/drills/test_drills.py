"""Disaster drills: a server brought up from replicated copies at another site."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from provisioner.audit_log.models import Event
from provisioner.drills import refusals
from provisioner.drills.actions import drill_plan_save, drill_plan_stop, drill_start
from provisioner.drills.models import Drill, DrillPlan
from provisioner.drills.sweeps import give_up, start_due
from provisioner.drills.workflows import DRILL
from provisioner.gateways import registry
from provisioner.gateways.ontap.types import MirrorVolumeSpec
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest, NotAllowed
from provisioner.sandboxes.actions.hosts import sandbox_host_save
from provisioner.sandboxes.actions.keeping import sandbox_retire
from provisioner.sandboxes.models import Sandbox, SandboxHost
from provisioner.sandboxes.refusals import PlanRunning
from provisioner.sites.models import Site
from tests.support.factories import UserFactory
from tests.support.jobs import settle
from tests.support.sandboxes import (
    MIB,
    PARTS,
    SandboxScene,
    free_port,
    perform_until,
)
from tests.support.two_sites import far_site, lab

pytestmark = pytest.mark.django_db(transaction=True)

__all__ = ["far_site", "lab"]

REPLICAS = {f"prod_{part}": f"dr_{part}" for part in PARTS}
TOGETHER = "hourly.together"


@dataclass(kw_only=True)
class DrillScene:
    """The original, and volumes at another site that SnapMirror fills from its own."""

    here: SandboxScene
    far: Site
    host: SandboxHost

    def replicate(self, name: str, *, parts: tuple[str, ...] = PARTS) -> None:
        """Take a snapshot of the original's volumes, and transfer it."""
        there = registry.ontap(self.far)
        group = self.here.gateway.create_group(
            "dr", volumes=[f"prod_{each}" for each in parts]
        )
        self.here.gateway.create_group_snapshot(group.uuid, name=name, comment="")
        self.here.gateway.delete_group(group.uuid)
        for part in parts:
            relationship = there.find_relationship(f"dr_{part}")
            assert relationship is not None
            started = there.start_transfer(relationship.uuid, snapshot=name)
            ends = time.monotonic() + 20
            while time.monotonic() < ends:
                transfer = there.find_transfer(relationship.uuid, transfer_uuid=started)
                if transfer is not None and transfer.state == "success":
                    break
                time.sleep(0.05)

    def plan(self, **given: Any) -> DrillPlan:
        asked: dict[str, Any] = {
            "by": self.here.by,
            "server": self.here.server,
            "host": self.host,
            "version": self.here.version,
            "replicas": REPLICAS,
            "is_on": True,
        }
        return drill_plan_save(**(asked | given))

    def drilled(self) -> Drill:
        started = drill_start(by=self.here.by, server=self.here.server)
        settle(started.sandbox)
        return Drill.objects.select_related("sandbox").get(pk=started.pk)

    def events(self) -> list[str]:
        found = Event.objects.filter(kind__startswith="drill_").order_by("pk")
        return list(found.values_list("kind", flat=True))


@pytest.fixture
def drill_scene(sandbox_scene: SandboxScene, far_site: Site) -> Iterator[DrillScene]:
    here, there = sandbox_scene, registry.ontap(far_site)
    far_site.export_clients = ["127.0.0.1"]
    far_site.save()
    for source, replica in REPLICAS.items():
        there.create_mirror_volume(
            MirrorVolumeSpec(
                name=replica,
                aggregate=far_site.aggregate,
                size_bytes=200 * MIB,
                comment="of others",
                export_policy="default",
            )
        )
        there.create_relationship(
            replica, source_path=f"{here.site.svm}:{source}", policy="Asynchronous"
        )
    host = sandbox_host_save(
        by=here.by,
        name="spare",
        site=far_site,
        address="127.0.0.1",
        first_port=free_port(),
        at_most=2,
        uid=here.host.uid,
        gid=here.host.gid,
    )
    yield DrillScene(here=here, far=far_site, host=host)
    for sandbox in Sandbox.with_retired.all():
        replace(here.original, tag=str(sandbox.tag)).stop()
    for volume in there.list_volumes():
        if "sandbox" in volume.name:
            there.delete_volume(volume.uuid, force=True)
    for source, replica in REPLICAS.items():
        if (relationship := there.find_relationship(replica)) is not None:
            there.end_relationship(relationship)
        filled = there.find_volume(replica)
        if filled is not None:
            there.delete_volume(filled.uuid, force=True)
        here.gateway.release_all(source)


@pytest.mark.integration
def test_a_server_comes_up_from_its_last_copy_and_leaves_nothing(
    drill_scene: DrillScene,
) -> None:
    scene = drill_scene
    scene.replicate("hourly.one")
    scene.here.submit(scene.here.server.p4port, text="three\n", name="three.txt")
    scene.replicate("hourly.two")
    scene.here.submit(scene.here.server.p4port, text="lost\n", name="lost.txt")
    newest = max(map(int, scene.here.changes_at(scene.here.server.p4port)))
    scene.plan()
    scene.here.original.stop()  # that is what a drill is for

    drill = scene.drilled()

    assert (drill.trouble, drill.finding, drill.change) == ("", "", newest - 1)
    assert drill.lost is not None
    assert drill.took is not None
    assert dt.timedelta(0) <= drill.lost < dt.timedelta(minutes=5)
    assert dt.timedelta(0) < drill.took < dt.timedelta(minutes=5)
    assert drill.sandbox.consistency == Sandbox.Consistency.REPLICATED
    assert drill.sandbox.site == scene.far
    assert settle(drill.sandbox).state == Sandbox.State.RETIRED
    there = registry.ontap(scene.far)
    assert [v.name for v in there.list_volumes() if "sandbox" in v.name] == []
    volume = there.find_volume("dr_db")
    assert volume is not None
    assert {"hourly.one", "hourly.two"} <= {
        each.name for each in there.list_snapshots(volume.uuid)
    }
    assert scene.events() == ["drill_plan_changed", "drill_passed"]
    said = StringIO()
    call_command("drill", "results", "--server", "production", stdout=said)
    copied = f"{drill.lost.total_seconds():.0f}"
    assert f"at far: passed; copy {copied} s old" in said.getvalue()
    assert f"change {drill.change}" in said.getvalue()


@pytest.mark.integration
def test_an_old_copy_is_a_finding_and_copies_of_no_one_moment_a_failure(
    drill_scene: DrillScene,
) -> None:
    scene = drill_scene
    scene.replicate("db.only", parts=("db",))
    scene.replicate("rest.only", parts=("journal", "depot"))
    scene.plan()

    apart = scene.drilled()

    assert "have no snapshot of one name" in apart.trouble
    assert apart.sandbox.state == Sandbox.State.FAILED
    sandbox_retire(by=scene.here.by, sandbox=apart.sandbox)
    assert settle(apart.sandbox).state == Sandbox.State.RETIRED
    scene.replicate(TOGETHER)
    started = drill_start(by=scene.here.by, server=scene.here.server)
    Drill.objects.filter(pk=started.pk).update(
        requested_at=clocks.database_now() + dt.timedelta(hours=30)
    )
    settle(started.sandbox)
    old = Drill.objects.get(pk=started.pk)
    assert "may be 24 hours" in old.finding
    assert old.trouble == ""
    assert scene.events()[1:] == ["drill_failed", "drill_found_old_copy"]


@pytest.mark.integration
def test_a_worker_killed_in_any_step_of_a_drill_leaves_the_copies_alone(
    drill_scene: DrillScene,
) -> None:
    scene, there = drill_scene, registry.ontap(drill_scene.far)
    scene.replicate(TOGETHER)
    scene.plan()
    began = clocks.database_now()
    for number, killed in enumerate(spec.name for spec in DRILL):
        sandbox = drill_start(
            by=scene.here.by,
            server=scene.here.server,
            at=began + dt.timedelta(seconds=number),
        ).sandbox
        perform_until(sandbox.operations.get(), killed=killed)
        sandbox.refresh_from_db()
        assert sandbox.status_code == "operation_lost"
        assert (give_up(now=began), give_up(now=began)) == (1, 0)

        sandbox_retire(by=scene.here.by, sandbox=sandbox)

        assert settle(sandbox).state == Sandbox.State.RETIRED, sandbox.status_message
        assert [v.name for v in there.list_volumes() if "sandbox" in v.name] == []
        assert scene.here.left() == [f"{TOGETHER}"] * len(PARTS), killed
    assert {drill.outcome for drill in Drill.objects.all()} == {"Failed"}
    for replica in REPLICAS.values():
        volume = there.find_volume(replica)
        assert volume is not None
        assert TOGETHER in [s.name for s in there.list_snapshots(volume.uuid)]


@pytest.fixture
def planned(sandbox_scene: SandboxScene, far_site: Site) -> DrillScene:
    """A plan whose volumes are not there: for what is refused before it begins."""
    host = sandbox_host_save(
        by=sandbox_scene.by,
        name="spare",
        site=far_site,
        address="127.0.0.1",
        first_port=free_port(),
        at_most=1,
        uid=sandbox_scene.host.uid,
        gid=sandbox_scene.host.gid,
    )
    return DrillScene(here=sandbox_scene, far=far_site, host=host)


def test_plans_are_refused_by_what_is_wrong_and_begin_when_due(
    planned: DrillScene, settings: Any
) -> None:
    scene, by, server = planned, planned.here.by, planned.here.server
    stranger = UserFactory.create(username="mallory")
    for wrong, field in (
        ({"host": scene.here.host}, "host"),
        ({"replicas": {"prod_db": "dr_db"}}, "replicas"),
        ({"replicas": {**REPLICAS, "other": "x"}}, "replicas"),
        ({"replicas": dict.fromkeys(REPLICAS, "dr")}, "replicas"),
        ({"replicas": {**REPLICAS, "prod_db": "no/name"}}, "replicas"),
        ({"cron": "whenever"}, "cron"),
        ({"oldest_hours": 0}, "oldest_hours"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            scene.plan(**wrong)
        assert refused.value.field == field
    assert not DrillPlan.objects.exists()
    with pytest.raises(NotAllowed):
        scene.plan(by=stranger)
    for act in (drill_start, drill_plan_stop):
        with pytest.raises(refusals.NoDrillPlan):
            act(by=by, server=server)
    with pytest.raises(InvalidRequest):
        scene.here.create(purpose=Sandbox.Purpose.DRILL)
    plan = scene.plan(cron="0 4 1 * *")
    for act in (drill_start, drill_plan_stop):
        with pytest.raises(NotAllowed):
            act(by=stranger, server=server)
    made = plan.changed_at
    first = (made.replace(day=1) + dt.timedelta(days=32)).replace(day=1, hour=5)
    assert start_due(now=made + dt.timedelta(minutes=1)) == 0
    assert start_due(now=first) == 1
    assert start_due(now=first) == 0
    drill = Drill.objects.get()
    with pytest.raises(PlanRunning):
        drill_start(by=by, server=server)
    assert start_due(now=first + dt.timedelta(days=40)) == 0
    assert scene.events()[-1] == "drill_failed"
    sandbox_retire(by=by, sandbox=drill.sandbox)
    assert not Drill.objects.get().is_running
    drill_plan_stop(by=by, server=server)
    assert start_due(now=first + dt.timedelta(days=80)) == 0


def test_the_command_plans_and_says_what_is_wrong(planned: DrillScene) -> None:
    whole = [f"--replica={source}={replica}" for source, replica in REPLICAS.items()]
    known = ["--server=production", "--host=spare", "--p4d=2024.2"]
    for arguments, sentence in (
        (["plan", "--server=nobody"], "There is no perforce server “nobody”"),
        (["now", "--server=production"], "has no plan of drills"),
        (["plan", "--server=production"], "There is no sandbox host “”"),
        (["plan", *known, "--replica=x"], "“x” is not VOLUME=REPLICA"),
        (["plan", *known], "Name what SnapMirror fills from prod_db"),
    ):
        with pytest.raises(CommandError, match=sentence):
            call_command("drill", *arguments)
    call_command("drill", "plan", *known, *whole, "--cron=0 5 2 * *")
    assert DrillPlan.objects.get().cron == "0 5 2 * *"
    call_command("drill", "now", "--server=production")
    said = StringIO()
    call_command("drill", "results", "--server=production", stdout=said)
    assert "running; copy ? old" in said.getvalue()
    call_command("drill", "stop", "--server=production")
    assert not DrillPlan.objects.get().is_on
