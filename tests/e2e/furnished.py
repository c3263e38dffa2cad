"""An installation in which something of everything lies, as rows alone.

What nobody can ask for, because a far side says it, is written as the steps write it.
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

from django.utils import timezone

from provisioner.accounts.models import Team, User
from provisioner.bisect.actions import bisection_start
from provisioner.catalog.actions.lifecycle import template_archive
from provisioner.catalog.actions.snapshots import (
    snapshot_describe,
    snapshot_hold,
    snapshot_withdraw,
)
from provisioner.catalog.models import (
    RefreshPolicy,
    ServerWatch,
    Snapshot,
    Template,
    TemplateCheck,
)
from provisioner.copies.models import WorkspaceCopy
from provisioner.drift.models import DriftCheck, Finding
from provisioner.drills.models import Drill, DrillPlan
from provisioner.engine import states as engine_states
from provisioner.engine.models import LockWait, Operation, SlotBudget, Step
from provisioner.insight.models import (
    ClientListing,
    ListedClient,
    ProcessReading,
    ServerConfiguration,
)
from provisioner.leases.actions.leases import workspace_keep
from provisioner.leases.actions.policies import lease_policy_save
from provisioner.leases.models import LeasePolicy
from provisioner.mirrors.actions import mirror_transfer
from provisioner.notify.actions.subscriptions import template_subscribe
from provisioner.notify.actions.webhooks import webhook_create
from provisioner.notify.models import Webhook, WebhookDelivery
from provisioner.people.actions.tokens import api_token_create
from provisioner.probes.models import ProbeRun, ProcessCount
from provisioner.qualification.profiles import PHASES
from provisioner.recipes.models import CheckpointPlan, VerificationPlan
from provisioner.sandboxes.actions.describing import server_volumes_save
from provisioner.sandboxes.models import P4dVersion, Sandbox, SandboxPolicy
from provisioner.sites.models import (
    CapacityDay,
    ConnectionCheck,
    ConnectionTest,
    Site,
    SiteCapacity,
)
from provisioner.storage.models import FillingVolume
from provisioner.transfer.actions import workspace_transfer
from provisioner.workspace_snapshots.models import SnapshotPolicy, WorkspaceSnapshot
from provisioner.workspaces.actions.checking import workspace_check
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.actions.sharing import workspace_share
from provisioner.workspaces.models import Rescue, Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.abandoned import abandon
from tests.support.bisections import read
from tests.support.builds import build, fails, submitted, succeeds
from tests.support.factories import (
    CheckpointFactory,
    CopyRuleFactory,
    MirroredSnapshotFactory,
    MirrorFactory,
    MomentFactory,
    ProcessFactory,
    QualificationRunFactory,
    SandboxFactory,
    SandboxHostFactory,
    SiteFactory,
    SnapshotFactory,
    TemplateFactory,
    UserFactory,
    VerificationFactory,
)
from tests.support.logs import a_sync_that_waited
from tests.support.requests import workspace_create
from tests.support.transfers import has_arrived
from tests.support.warm_pools import fail, filled, make_pool

GIB, TIB = 2**30, 2**40
W, OP = Workspace.State, Operation.State
SNAPSHOTS = {48100: "tested", 48150: "failed", 48200: "tested"}
VIEW = "//depot/engine/main/... //engine/...\n-//depot/engine/.../*.psd //engine/..."
UNSUBMITTED = {
    "opened": [
        {
            "depot_file": f"//depot/engine/main/src/render/culling-{n}.cpp",
            "client_file": f"//c/src/render/culling-{n}.cpp",
            "action": "edit",
            "change": "default",
            "user": "alice",
            "client": "c",
        }
        for n in range(3)
    ],
    "shelved": [
        {
            "change": 48213,
            "user": "alice",
            "client": "c",
            "description": "Try culling by <b>occlusion</b> first",
            "is_shelved": True,
        }
    ],
    "untracked": [
        {
            "action": "add",
            "depot_file": "",
            "path": "/mnt/cloneyard/munich/alice/culling/a-directory-with-a-long-name/"
            "and-another-one/notes-of-monday-morning-that-nobody-else-has.txt",
        }
    ],
}


def now() -> dt.datetime:
    return timezone.now()


def ago(**span: float) -> dt.datetime:
    return now() - dt.timedelta(**span)


class Furnished:
    """The rows; each page finds an example of what it is about in them."""

    def __init__(self) -> None:
        self.people()
        self.places()
        self.main_template()
        self.pools()  # they are filled while nobody waits for a worker
        self.other_templates()
        self.workspaces()
        self.transferring()
        self.bisections()
        self.telling()
        self.check_drift()
        self.mirrors()
        self.processes()
        self.logged = a_sync_that_waited(self.server)
        self.probes()

    def people(self) -> None:
        rendering = make_team("Rendering", max_workspaces=40)
        make_team("Audio and everything that makes a noise", max_workspaces=None)
        self.admin = UserFactory.create(
            username="admin", is_staff=True, is_superuser=True
        )
        self.alice = UserFactory.create(
            username="alice",
            email="alice@example.com",
            team=rendering,
            max_workspaces=12,
            max_unique_bytes=200 * GIB,
        )
        self.bob = UserFactory.create(username="bob", team=rendering)
        self.carol = UserFactory.create(username="carol")
        self.ci = UserFactory.create(username="ci-nightly", is_service=True)
        self.newcomer = UserFactory.create(username="newcomer", uid=None, gid=None)

    def places(self) -> None:
        self.site: Site = SiteFactory.create(name="munich", title="Munich, building 7")
        self.server = self.site.perforce_server
        self.away: Site = SiteFactory.create(name="berlin", perforce_server=self.server)
        SiteCapacity.objects.create(
            site=self.site,
            ontap_version="NetApp Release 9.16.1",
            aggregate_size_bytes=90 * TIB,
            aggregate_used_bytes=62 * TIB,
            aggregate_available_bytes=28 * TIB,
            logical_bytes=900 * TIB,
            saved_bytes=850 * TIB,
            saved_within_bytes=20 * TIB,
            volumes=312,
            max_volumes=1000,
            measured_at=ago(minutes=1),
        )
        SiteCapacity.objects.create(
            site=self.away,
            measured_at=ago(hours=3),
            status_message="ONTAP at berlin did not answer within 10 seconds.",
        )
        CapacityDay.objects.bulk_create(
            CapacityDay(
                site=self.site,
                day=(ago(days=n)).date(),
                size_bytes=90 * TIB,
                used_bytes=(62 - n // 2) * TIB,
                logical_bytes=900 * TIB,
                saved_bytes=850 * TIB,
                clones=280 - 7 * n,
            )
            for n in range(30)
        )
        self.connection_tests()
        SlotBudget.objects.create(
            server=self.server,
            paused_at=ago(minutes=4),
            paused_by=self.admin,
            paused_reason="Checkpoint of the server, until ten.",
            backed_off_to=2,
            backed_off_at=ago(minutes=2),
        )
        ServerWatch.objects.create(
            server=self.server, newest_change=48300, polled_at=ago(seconds=12)
        )

    def connection_tests(self) -> None:
        checks = [
            {
                "name": "address",
                "outcome": "passed",
                "sentence": "filer.example.com is 10.0.0.9.",
                "advice": "",
            },
            {
                "name": "svm",
                "outcome": "failed",
                "sentence": "There is no SVM svm_of_others.",
                "advice": "The SVMs that this user sees are svm_dev and svm_build.",
            },
            {
                "name": "aggregate",
                "outcome": "skipped",
                "sentence": "Needs the SVM.",
                "advice": "",
            },
            {
                "name": "version",
                "outcome": "remarked",
                "sentence": "ONTAP 9.10 is old.",
                "advice": "Clones split slower there.",
            },
        ]
        for place, found in (("web", checks[:1]), ("worker", checks)):
            for about in ({"site": self.site}, {"server": self.server}):
                test = ConnectionTest.objects.create(
                    **about,
                    place=place,
                    asked_at=ago(minutes=9),
                    asked_by=self.admin,
                    checked_at=ago(minutes=8),
                    host="build-host-1.example.com",
                )
                ConnectionCheck.objects.bulk_create(
                    ConnectionCheck(test=test, **check) for check in found
                )

    def main_template(self) -> None:
        self.template = self.template_of("engine-main", test_command="make test")
        for change, quality in SNAPSHOTS.items():
            operation = build(self.template, by=self.admin, change=change)
            succeeds(operation, quality=quality)
            took(operation, sync=40, build=350, test=61, snapshot=0.4)
        Snapshot.objects.filter(template=self.template).update(
            have_count=612_345,
            client_spec=SPEC,
            remarks=["12 files are writable by everybody."],
        )
        self.snapshots = list(self.template.snapshots.order_by("change"))
        Snapshot.objects.filter(pk=self.snapshots[0].pk).update(created_at=ago(days=2))
        for number, user in ((48201, "bob"), (48233, "carol"), (48300, "bob")):
            submitted(self.template, number, user, at=ago(minutes=48400 - number))
        RefreshPolicy.objects.create(
            template=self.template, mode="on_change", changed_at=ago(days=3)
        )
        TemplateCheck.objects.create(
            template=self.template,
            remarks=[{"kind": "modtime", "sentence": "The client sets no modtime."}],
            files=612_345,
            size_bytes=212 * GIB,
            depot_files=900_000,
            checked_at=ago(hours=2),
        )
        template_subscribe(by=self.alice, template=self.template)

    def other_templates(self) -> None:
        self.building = self.template_of("tools")
        self.build = build(self.building, by=self.admin, change=48290)
        at_work(self.build, "sync", done=0.4)
        self.broken = self.template_of("shaders-of-every-platform-and-more")
        self.failed_build = fails(build(self.broken, by=self.admin, change=48280))
        step = self.failed_build.steps.get(name="build")
        Step.objects.filter(pk=step.pk).update(attempt=1)
        step.log_path.write_text("cc render.c\n\x1b[31mrender.c:7: error\x1b[0m\n")
        SnapshotFactory.create(template=self.broken, change=48200, client_spec=SPEC)
        Snapshot.objects.filter(template=self.broken).update(created_at=ago(days=1))
        Template.objects.filter(pk=self.broken.pk).update(
            actual_size_bytes=100 << 30, used_bytes=97 << 30, used_inodes=240_511
        )
        FillingVolume.objects.create(
            template=self.broken, level=95, crossed_at=ago(hours=3)
        )
        self.fresh = self.template_of("never-built")
        self.archived = self.template_of("release-41", title="Release 41, Linux")
        self.held, self.withdrawn = SnapshotFactory.create_batch(
            2, template=self.archived, client_spec=SPEC
        )
        snapshot_describe(
            by=self.admin,
            snapshot=self.held,
            label="Alpha 3",
            notes="Known: slow shaders.",
        )
        why = "The trade show runs on this one until Friday."
        snapshot_hold(by=self.admin, snapshot=self.held, reason=why)
        why = "Its shaders are those of the wrong branch."
        snapshot_withdraw(by=self.admin, snapshot=self.withdrawn, reason=why)
        why = "Use release-42 instead."
        template_archive(by=self.admin, template=self.archived, reason=why)

    def template_of(self, name: str, **fields: Any) -> Template:
        template: Template = TemplateFactory.create(
            site=self.site,
            name=name,
            description=f"All of {name}, with what its build makes.",
            view=VIEW,
            build_command="make -j32 all",
            owner=self.admin,
            **fields,
        )
        return template

    def asked(self, name: str, *, by: User | None = None, **more: Any) -> Workspace:
        more.setdefault("template", self.template)
        return workspace_create(by=by or self.alice, name=name, **more)

    def ready(self, name: str, **more: Any) -> Workspace:
        workspace = self.asked(name, **more)
        operation = running_of(workspace)
        took(operation, access=0.2, clone=1.1, export=0.3, mount=0.9, owner=4, flush=3)
        pin = workspace.snapshot
        operation.steps.filter(name="flush").update(
            result={"have_count": pin.have_count, "have_digest": pin.have_digest}
        )
        end(operation, OP.SUCCEEDED)
        set_workspace_state(workspace, W.READY)
        Workspace.objects.filter(pk=workspace.pk).update(
            unique_bytes=3 * GIB,
            measured_at=ago(minutes=3),
            activity={"opened": {"count": 3}, "shelved": sign(2), "files": sign(0)},
            activity_seen_at=ago(minutes=40),
        )
        workspace.refresh_from_db()
        return workspace

    def workspaces(self) -> None:
        self.workspace = self.ready("culling")
        workspace_share(by=self.alice, workspace=self.workspace, person="carol")
        theirs = self.ready("echo", by=self.carol)
        workspace_share(by=self.carol, workspace=theirs, person="alice")
        self.shared = theirs
        self.mates = self.ready("shadows", by=self.bob)
        kept = self.ready("kept-for-a-customer")
        workspace_keep(
            by=self.admin, workspace=kept, reason="A customer may call any day."
        )
        self.forgotten = abandon(self.ready("forgotten", by=self.bob))
        self.making = self.asked("in-the-making")
        for name in ("access", "clone", "export", "mount"):
            done(running_of(self.making), name, seconds=1.2)
        at_work(running_of(self.making), "owner", done=0.63)
        self.waiting = self.asked("waits-for-its-turn", purpose="build")
        self.failed = self.asked("no-room-for-this-one")
        fail_at(running_of(self.failed), "clone", code="full", message=FULL)
        set_workspace_state(self.failed, W.FAILED, code="full", message=FULL)
        self.refused = self.ready("unsubmitted-work")
        end(
            workspace_retire(by=self.alice, workspace=self.refused),
            OP.REFUSED,
            code="unsubmitted_work",
            message="5 things in this workspace are not submitted.",
            findings=UNSUBMITTED,
        )
        self.refused.refresh_from_db()
        set_workspace_state(self.refused, W.READY)
        self.trashed = self.trash("gone-for-now", by=self.alice)
        self.retired = self.trash("gone-for-good", by=self.alice)
        set_workspace_state(self.retired, W.PURGING)
        set_workspace_state(self.retired, W.RETIRED)

    def trash(self, name: str, *, by: User) -> Workspace:
        workspace = self.ready(name, by=by)
        operation = workspace_retire(by=by, workspace=workspace)
        end(operation, OP.SUCCEEDED)
        workspace.refresh_from_db()
        set_workspace_state(
            workspace, W.TRASHED, purge_at=now() + dt.timedelta(hours=71)
        )
        Rescue.objects.create(
            workspace=workspace,
            operation=operation,
            has_archive=True,
            directory=f"/rescue/{by.username}/{name}-20261122T093000-1a2b3c",
            archived_files=2,
            archived_bytes=3072,
            archive_sha256="0" * 64,
            shelves=[
                {"change": 7, "was": "default", "files": ["//a"], "made_by_us": True}
            ],
            has_work=True,
            is_complete=True,
        )
        return workspace

    def transferring(self) -> None:
        self.old = self.ready("old-work", snapshot=self.snapshots[0])
        look = workspace_check(by=self.alice, workspace=self.old)
        engine_states.end_operation(
            look, OP.SUCCEEDED, findings={**UNSUBMITTED, "blockers": []}
        )
        self.older = self.ready("older-work", snapshot=self.snapshots[0])
        self.made_by_transfer = workspace_transfer(by=self.alice, workspace=self.older)
        end(running_of(self.made_by_transfer), OP.SUCCEEDED)
        set_workspace_state(self.made_by_transfer, W.READY)
        has_arrived(
            self.made_by_transfer,
            outcome="older-work stays, because something is left to be decided.",
        )

    @property
    def extendable(self) -> list[Workspace]:
        return [self.old, self.older]

    def bisections(self) -> None:
        self.bisection = bisection_start(
            by=self.bob, template=self.template, good=48100, bad=48150
        )
        read(self.bisection.pk, range(48105, 48151, 5))
        step = self.bisection.steps.get()
        end(running_of(step.workspace), OP.SUCCEEDED)
        set_workspace_state(step.workspace, W.READY)

    def pools(self) -> None:
        self.pool = make_pool(self.template, self.ci, size=2)
        members = filled(self.pool)
        operation = workspace_retire(by=self.admin, workspace=members[0])
        operation.subject.workspace.refresh_from_db()
        fail(operation.subject.workspace)

    def sandboxes(self) -> None:
        """One that is ready, one that failed, one that stopped, and what they need."""
        server_volumes_save(
            by=self.admin,
            server=self.server,
            site=self.site,
            places="db p4_db/root\njournal p4_journal/journal\ndepot p4_depots",
        )
        P4dVersion.objects.create(release="2024.2", path="/opt/p4d/2024.2/p4d")
        SandboxPolicy.objects.create(team=Team.objects.create(name="Tools"))
        host = SandboxHostFactory.create(name="isolated", site=self.site)
        self.sandbox, self.failed_sandbox, self.stopped_sandbox = (
            SandboxFactory.create(
                name=f"case-{state}",
                site=self.site,
                host=host,
                owner=self.admin,
                state=state,
                status_code=code,
                status_message=code and "Something else answers at 127.0.0.1:16660.",
            )
            for state, code in (
                *(("ready", ""), ("failed", "port_in_use")),
                ("stopped", "p4d_stopped"),
            )
        )
        CheckpointPlan.objects.create(
            server=self.server,
            host=host,
            version=P4dVersion.objects.get(),
            directory="/checkpoints",
            is_on=True,
            has_failed=True,
            status="The checkpoint by nightly failed. p4d -jd failed: No space left.",
        )
        VerificationPlan.objects.create(
            server=self.server,
            host=host,
            version=P4dVersion.objects.get(),
            is_on=True,
            has_failed=True,
            status="The verification by weekly failed. It stopped.",
        )
        DrillPlan.objects.create(
            server=self.server,
            host=host,
            version=P4dVersion.objects.get(),
            is_on=True,
            status="It answered at far after 55 s, 55 min behind at change 4711.",
        )
        for each in ({}, {"trouble": "They have no snapshot of one name."}):
            Drill.objects.create(
                sandbox=SandboxFactory.create(
                    perforce_server=self.server,
                    host=host,
                    state=Sandbox.State.RETIRED,
                    retired_at=timezone.now(),
                ),
                oldest_hours=24,
                copy_of=timezone.now(),
                answered_at=timezone.now(),
                ended_at=timezone.now(),
                change=4711,
                **each,
            )
        made = {"sandbox__perforce_server": self.server, "sandbox__host": host}
        CheckpointFactory.create(**made)
        CheckpointFactory.create(
            **made, is_proven=False, remark="db.have has 3 records of 4."
        )
        self.verification = VerificationFactory.create(**made)
        depot = self.verification.depots.create(
            name="depot", kind="local", seconds=12.5, missing=1
        )
        depot.damaged.create(path="//depot/a", revision=2, change=7, status="missing")
        self.verification.depots.create(
            name="old", kind="archive", left_out="An archive depot."
        )
        self.run, self.failed_run = (
            QualificationRunFactory.create(
                sandbox=self.sandbox,
                state=state,
                status_code=code,
                status_message=code and "The sandbox case-ready is not ready any more.",
            )
            for state, code in (("done", ""), ("failed", "sandbox_not_ready"))
        )
        self.workspaces_run = QualificationRunFactory.create(
            profile="workspaces",
            sandbox=None,
            template=self.template,
            children=10,
            perforce_server=self.template.site.perforce_server,
            site=self.template.site,
            owner=self.sandbox.owner,
            name="workspaces at main",
        )
        for at_once in (1, 10):
            for phase, title in PHASES.items():
                self.workspaces_run.times.create(
                    at_once=at_once, repeat=1, number=1, phase=phase, seconds=len(title)
                )
        for repeat, held in ((1, 4.0), (2, 3.8)):
            for figure, value in (
                ("integrate", 21.0),
                ("elapsed", 2.5 * held),
                ("commit", held),
                ("commit_rate", 70_000 / held),
                ("files", 70_000),
            ):
                self.run.figures.create(repeat=repeat, code=figure, value=value)
            self.run.host_rounds.create(
                host_number=1,
                repeat=repeat,
                host="isolated",
                token=f"cyq1h1r{repeat}a1",
                began=now(),
                ended=now(),
                processors=16,
                load_before=0.4,
                load_after=3.1,
            )

    def mirrors(self) -> None:
        """One at rest, and one to which a snapshot is being transferred."""
        self.mirror, self.transferring_to = (
            MirrorFactory.create(
                template=self.template,
                site=SiteFactory.create(name=name, perforce_server=self.server),
                trouble=trouble,
            )
            for name, trouble in (("pune", "The relationship is paused."), ("oslo", ""))
        )
        arrived, begun = self.snapshots[:2]
        for mirror in (self.mirror, self.transferring_to):
            MirroredSnapshotFactory.create(mirror=mirror, snapshot=arrived)
        mirror_transfer(by=self.admin, mirror=self.transferring_to, snapshot=begun)
        CopyRuleFactory.create(mirror=self.mirror)
        self.sandboxes()
        SnapshotPolicy.objects.create(site=self.site, template=self.template)
        self.taken = WorkspaceSnapshot.objects.create(
            workspace=self.workspace,
            name="cloneyard-ws-hourly.2026-11-24_0905",
            ontap_uuid="u",
            taken_at=now(),
        )
        self.copy = WorkspaceCopy.objects.create(
            workspace=self.workspace, site=self.mirror.site
        )

    def processes(self) -> None:
        """Two that run for long, one that is the server's own; the configuration."""
        ProcessReading.objects.create(server=self.server, read_at=now())
        read = ServerConfiguration.objects.create(server=self.server, read_at=now())
        read.settings.create(name="monitor", value="0", source="default")
        read.filesystems.create(
            name="P4ROOT", fs_type="xfs", mount_point="/p4/1", percent_used=61
        )
        ClientListing.objects.create(server=self.server, read_at=now())
        ListedClient.objects.create(
            server=self.server,
            name="ann-everything",
            owner="ann",
            accessed_at=now() - dt.timedelta(days=200),
            opened_files=4,
            view_read_at=now(),
            maps_whole_depot=True,
            whole_lines=["//depot/... //ann-everything/..."],
        )
        self.process, self.pull = (
            ProcessFactory.create(server=self.server, command=command)
            for command in ("sync", "pull")
        )
        ProcessFactory.create(
            server=self.server,
            state="I",
            command="IDLE",
            started_at=now() - dt.timedelta(days=9),
        )

    def probes(self) -> None:
        """Rounds of three weeks: most are fast, some fail, and some are gaps."""
        for hour in range(0, 3 * 7 * 24, 3):
            at = ago(hours=hour)
            slow = 4.0 if at.hour in (9, 14) else 1.0
            if hour % 99 == 0:
                ProbeRun.objects.create(server=self.server, at=at, gap="No answer.")
                continue
            run = ProbeRun.objects.create(
                server=self.server,
                at=at,
                host="desk7",
                lapse_seconds=0.9 * slow,
                change=48_000 - hour,
            )
            for command, share in (("info", 0.1), ("dirs //*", 0.7)):
                run.times.create(command=command, seconds=share * slow)
            running = 31 if hour % 60 == 0 else 4
            ProcessCount.objects.create(server=self.server, at=at, processes=running)
        self.moment = MomentFactory.create(server=self.server, created_by=self.admin)
        failed = ProbeRun.objects.create(server=self.server, at=now(), change=48_000)
        failed.times.create(command="dirs //*", error="Request too large.")

    def telling(self) -> None:
        self.webhook: Webhook = webhook_create(
            by=self.alice,
            url="https://hooks.example.com/cloneyard?key=abcdefghijklmnopqrstuvwxyz",
            events=["workspace.ready", "template.failed"],
        )
        for state, code in (("delivered", 204), ("given_up", 503)):
            WebhookDelivery.objects.create(
                webhook=self.webhook,
                event="workspace.ready",
                body="{}",
                state=state,
                attempts=3,
                next_try_at=None,
                tried_at=now(),
                response_code=code,
                duration_ms=81,
                ended_at=now(),
            )
        for name, days in (("nightly build", 30), ("laptop", None)):
            self.token, _ = api_token_create(
                by=self.alice, name=name, days=days, purposes=["ci"]
            )
        lease_policy_save(
            by=self.admin,
            template=self.template,
            purpose="ci",
            default_seconds=3600,
            maximum_seconds=86400,
            trash_seconds=3600,
            warn_seconds=[600],
        )
        self.lease_policy = LeasePolicy.objects.get()
        LockWait.objects.create(
            server=self.server,
            at=ago(minutes=2),
            operation=running_of(self.making),
            command="flush",
            table="db.have",
            waited_ms=812,
            held_ms=40,
        )

    def check_drift(self) -> None:
        for system in ("ontap", "perforce"):
            DriftCheck.objects.create(
                site=self.site,
                system=system,
                checked_at=ago(minutes=20),
                seconds=1.4,
                objects_seen=312,
                status_message="" if system == "ontap" else "No answer.",
            )
        self.finding = Finding.objects.create(
            site=self.site,
            kind=Finding.Kind.VOLUME_WITHOUT_ROW,
            subject="cy_engine_main_of_somebody_who_left_the_company_long_ago",
            external_id=str(uuid.UUID(int=7)),
            tag_kind=Finding.TagKind.TEMPLATE,
            tag=uuid.UUID(int=8),
            sentence="Nobody remembers it, and it carries our tag.",
            details={"junction_path": "/old", "owner": "x", "size": 3 * GIB},
            action=Finding.Action.REMOVE,
            first_seen_at=ago(days=2),
            last_seen_at=ago(minutes=20),
        )
        view = {"is": ["//d/a/... //c/..."], "was": ["//d/... //c/..."]}
        self.differs = Finding.objects.create(
            site=self.site,
            kind=Finding.Kind.CLIENT_VIEW_DIFFERS,
            subject="cy-alice-culling",
            sentence="Somebody changed the View of the client.",
            details={
                "fields": {"View": view},
                "lines_out": view["is"],
                "lines_in": view["was"],
            },
            action=Finding.Action.FINISH,
            workspace=self.workspace,
            first_seen_at=ago(hours=2),
            last_seen_at=ago(minutes=20),
        )


SPEC = (
    "Client:\ttemplate\n\nOwner:\tcloneyard\n\nRoot:\t/t\n\n"
    "Options:\tnoallwrite noclobber nocompress unlocked nomodtime normdir\n\n"
    "SubmitOptions:\tsubmitunchanged\n\nLineEnd:\tlocal\n\n"
    "View:\n\t//depot/engine/main/... //template/...\n"
)
FULL = (
    "The aggregate aggr1 has 3 % left, and 5 % are kept free. We do not try again by "
    "ourselves: retire what you do not need, or ask your administrator."
)


def make_team(name: str, *, max_workspaces: int | None) -> Team:
    return Team.objects.create(name=name, max_workspaces=max_workspaces)


def running_of(subject: Workspace | Template) -> Operation:
    return subject.operations.get(state=OP.RUNNING)


def end(operation: Operation, state: Operation.State, **more: Any) -> None:
    """Let an operation end as its last step would have it."""
    engine_states.end_operation(operation, state, **more)
    engine_states.skip_waiting_steps(operation)


def at_work(operation: Operation, name: str, *, done: float) -> Step:
    """Let a step be so far on its way."""
    step = begun(operation, name)
    progress = {"done": int(612_345 * done), "total": 612_345, "unit": "files"}
    engine_states.record_progress(step, {"text": "3,100 files a second", **progress})
    return step


def sign(days: float) -> dict[str, str]:
    return {"at": ago(days=days, hours=2).isoformat(), "detail": ""}


def begun(operation: Operation, name: str) -> Step:
    step = operation.steps.get(name=name)
    if step.state == Step.State.WAITING:
        engine_states.queue_step(step, job_id=1)
    engine_states.start_step(step)
    return step


def done(operation: Operation, name: str, *, seconds: float) -> None:
    step = begun(operation, name)
    engine_states.finish_step(step, result=None)
    assert step.started_at is not None
    Step.objects.filter(pk=step.pk).update(
        started_at=step.started_at - dt.timedelta(seconds=seconds)
    )


def fail_at(operation: Operation, name: str, *, code: str, message: str) -> None:
    engine_states.fail_step(begun(operation, name), code=code, message=message)
    end(operation, OP.FAILED, code=code, message=message)


def took(operation: Operation, **seconds: float) -> Operation:
    """Mark steps of an operation as done, each after so many seconds."""
    began = ago(minutes=30)
    for name, took in seconds.items():
        operation.steps.filter(name=name).update(
            state=Step.State.DONE,
            attempt=1,
            started_at=began,
            ended_at=began + dt.timedelta(seconds=took),
        )
    return operation
