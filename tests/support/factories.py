"""The smallest valid rows; states are reached through actions, not set here."""

from __future__ import annotations

import datetime as dt
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
from provisioner.insight.models import Process
from provisioner.lib import clocks
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.probes.models import Moment
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
