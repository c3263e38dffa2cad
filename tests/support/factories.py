"""The smallest valid rows; states are reached through actions, not set here."""

from __future__ import annotations

import datetime as dt
import gzip
from typing import TypeVar

from django.db.models import Model
from django.utils import timezone
from factory.declarations import (
    LazyAttribute,
    LazyFunction,
    SelfAttribute,
    Sequence,
    SubFactory,
)
from factory.django import DjangoModelFactory, Password
from factory.faker import Faker

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.copies.models import CopyRule
from provisioner.insight.models import Process
from provisioner.lib import clocks
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.probes.models import Moment
from provisioner.qualification.models import QualificationRun, RunLog
from provisioner.recipes.models import Checkpoint, Verification
from provisioner.sandboxes.models import Sandbox, SandboxHost
from provisioner.server_log.models import LogCommand
from provisioner.sites.models import PerforceServer, Site
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state

Row = TypeVar("Row", bound=Model)

PASSWORD = "correct horse battery staple"


class UserFactory(DjangoModelFactory[User]):
    class Meta:
        model = User

    username = Sequence(lambda n: f"user{n}")
    uid = Sequence(lambda n: 20001 + n)
    gid = 20000

    password = Password(PASSWORD)


class PerforceServerFactory(DjangoModelFactory[PerforceServer]):
    class Meta:
        model = PerforceServer

    name = Sequence(lambda n: f"perforce{n}")
    p4port = "127.0.0.1:9"  # the discard port: nothing answers there
    p4user = "cloneyard"


class LogCommandFactory(DjangoModelFactory[LogCommand]):
    class Meta:
        model = LogCommand

    pid = Sequence(lambda n: 100 + n)
    user = "alice"
    client = "alice-main"
    host = "10.5.70.45"
    program = "p4/2024.1/LINUX26X86_64/2611120"
    command = "sync"
    arguments = ""
    lapse_ms = 20
    compute_ms = paused_ms = cpu_ms = wait_ms = held_ms = max_rss_kb = 0
    rpc_in_mb = rpc_out_mb = files_sent = sent_mb = rows_scanned = 0
    origin = "people"
    has_failed = False


class ProcessFactory(DjangoModelFactory[Process]):
    class Meta:
        model = Process

    server = SubFactory(PerforceServerFactory)
    number = Sequence(lambda n: 4000 + n)
    state = Process.State.RUNNING
    user = "alice"
    program = "p4/2025.1"
    client = "alice-main"
    host = "10.5.70.45"
    command = "sync"
    arguments = "//..."
    started_at = LazyFunction(lambda: timezone.now() - dt.timedelta(minutes=12))


class MomentFactory(DjangoModelFactory[Moment]):
    class Meta:
        model = Moment

    server = SubFactory(PerforceServerFactory)
    label = "Moved db.* to NVMe"
    at = LazyFunction(lambda: timezone.now() - dt.timedelta(days=9))
    created_by = SubFactory(UserFactory)


class SiteFactory(DjangoModelFactory[Site]):
    class Meta:
        model = Site

    name = Sequence(lambda n: f"site{n}")
    perforce_server = SubFactory(PerforceServerFactory)
    ontap_host = "127.0.0.1"
    ontap_port = 9
    ontap_user = "admin"
    svm = "svm_dev"
    aggregate = "aggr1"
    mount_root = "/nonexistent/cloneyard"
    export_clients = LazyFunction(lambda: ["127.0.0.1"])
    template_uid = 20000
    template_gid = 20000


class TemplateFactory(DjangoModelFactory[Template]):
    class Meta:
        model = Template

    site = SubFactory(SiteFactory)
    name = Sequence(lambda n: f"main{n}")
    view = "//depot/main/... //template/..."
    owner = SubFactory(UserFactory, is_staff=True)


class SnapshotFactory(DjangoModelFactory[Snapshot]):
    class Meta:
        model = Snapshot

    template = SubFactory(TemplateFactory)
    name = Sequence(lambda n: f"c100.b{n}")
    ontap_uuid = Faker("uuid4")
    change = 100
    client_spec = (
        "Client:\ttemplate\n\nOwner:\tcloneyard\n\nRoot:\t/t\n\n"
        "Options:\tnoallwrite noclobber nocompress unlocked nomodtime normdir\n\n"
        "SubmitOptions:\tsubmitunchanged\n\nLineEnd:\tlocal\n\n"
        "View:\n\t//depot/main/... //template/...\n"
    )
    have_count = 1
    have_digest = "0" * 64
    parts = LazyFunction(list)
    is_complete = LazyAttribute(lambda made: not made.parts)


class MirrorFactory(DjangoModelFactory[Mirror]):
    """A mirror at rest: creating one takes two clusters."""

    class Meta:
        model = Mirror

    template = SubFactory(TemplateFactory)
    site = SubFactory(
        SiteFactory,
        perforce_server=SelfAttribute("..template.site.perforce_server"),
        svm="svm_far",
    )
    name = LazyAttribute(lambda made: f"{made.template.name} at {made.site.name}")
    state = Mirror.State.READY
    volume_uuid = Faker("uuid4")
    relationship_uuid = Faker("uuid4")


class CopyRuleFactory(DjangoModelFactory[CopyRule]):
    """Workspaces are copied to a `mirror`'s site, and those there to the home."""

    class Meta:
        model = CopyRule

    class Params:
        mirror = SubFactory(MirrorFactory)

    template = SelfAttribute("mirror.template")
    site = SelfAttribute("mirror.site")
    second_site = SelfAttribute("mirror.template.site")


class SandboxHostFactory(DjangoModelFactory[SandboxHost]):
    class Meta:
        model = SandboxHost

    name = Sequence(lambda number: f"isolated-{number}")
    site = SubFactory(SiteFactory)
    uid = 20000
    gid = 20000


class SandboxFactory(DjangoModelFactory[Sandbox]):
    """A sandbox that is ready: making one takes a server and its volumes."""

    class Meta:
        model = Sandbox

    name = Sequence(lambda number: f"case-{number}")
    site = SubFactory(SiteFactory)
    perforce_server = LazyAttribute(lambda made: made.site.perforce_server)
    host = SubFactory(SandboxHostFactory, site=SelfAttribute("..site"))
    owner = SubFactory(UserFactory)
    purpose = Sandbox.Purpose.DIAGNOSE
    release = "2024.2"
    p4d_path = "/opt/p4d/2024.2/p4d"
    server_id = LazyAttribute(lambda made: f"sandbox-{made.name}")
    port = Sequence(lambda number: 16660 + number)
    state = Sandbox.State.READY
    consistency = Sandbox.Consistency.GROUP
    taken_at = LazyFunction(timezone.now)
    ready_at = LazyFunction(timezone.now)
    expires_at = LazyFunction(lambda: timezone.now() + dt.timedelta(hours=8))
    defanged = LazyFunction(lambda: ["Unset any#startup.1, which was pull -i 1."])


class CheckpointFactory(DjangoModelFactory[Checkpoint]):
    """A checkpoint that is kept, and proven."""

    class Meta:
        model = Checkpoint

    sandbox = SubFactory(
        SandboxFactory,
        purpose=Sandbox.Purpose.CHECKPOINT,
        state=Sandbox.State.RETIRED,
        retired_at=LazyFunction(timezone.now),
    )
    path = Sequence(lambda number: f"/checkpoints/production.{number}.ckp.gz")
    change = 4711
    journal = 212
    size_bytes = 1_830_291
    plain_bytes = 10_921_733
    sha256 = "9f86d081" * 8
    md5 = "D41D8CD9" * 4
    dump_seconds = 31.4
    replay_seconds = 44.0
    tables = LazyFunction(lambda: {"db.change": 4711, "db.have": 90_210})
    is_proven = True


class VerificationFactory(DjangoModelFactory[Verification]):
    class Meta:
        model = Verification

    sandbox = SubFactory(
        SandboxFactory,
        purpose=Sandbox.Purpose.VERIFY,
        state=Sandbox.State.RETIRED,
        retired_at=LazyFunction(timezone.now),
    )
    ended_at = LazyFunction(timezone.now)


class QualificationRunFactory(DjangoModelFactory[QualificationRun]):
    """A run in a sandbox of its owner that has been measured."""

    class Meta:
        model = QualificationRun

    sandbox = SubFactory(SandboxFactory)
    perforce_server = LazyAttribute(lambda made: made.sandbox.perforce_server)
    site = LazyAttribute(lambda made: made.sandbox.site)
    owner = LazyAttribute(lambda made: made.sandbox.owner)
    name = LazyAttribute(lambda made: f"branchsubmit at {made.sandbox.name}")
    profile = "branchsubmit"
    files = 70_000
    repeats = 2
    state = QualificationRun.State.DONE
    release = "P4D/LINUX26X86_64/2024.2/2697822 (2024/12/19)"
    summary = "Repeat 1: 70,000 files in 4.000 s."
    ended_at = LazyFunction(timezone.now)


class RunLogFactory(DjangoModelFactory[RunLog]):
    class Meta:
        model = RunLog

    run = SubFactory(QualificationRunFactory)
    data = gzip.compress(b"Perforce server info:\n")
    size = 22
    is_whole = True


class MirroredSnapshotFactory(DjangoModelFactory[MirroredSnapshot]):
    """A snapshot that has arrived."""

    class Meta:
        model = MirroredSnapshot

    mirror = SubFactory(MirrorFactory)
    snapshot = SubFactory(SnapshotFactory, template=SelfAttribute("..mirror.template"))
    state = MirroredSnapshot.State.AVAILABLE
    ontap_uuid = Faker("uuid4")
    bytes = 4096
    seconds = 2.0
    arrived_at = LazyFunction(clocks.database_now)


def copy_of(row: Row) -> Row:
    """Return an unsubmitted row of the same values, without a key and a subject."""
    left_out = ("id", "subject")
    fields = [f for f in row._meta.concrete_fields if f.name not in left_out]
    return type(row)(**{f.attname: getattr(row, f.attname) for f in fields})


def purge(workspace: Workspace) -> None:
    """Move a workspace that is being retired through the trash to its end."""
    for state in (
        Workspace.State.TRASHED,
        Workspace.State.PURGING,
        Workspace.State.RETIRED,
    ):
        set_workspace_state(workspace, state)
