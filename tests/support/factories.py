"""The smallest valid rows; states are reached through actions, not set here."""

from __future__ import annotations

import factory
from factory.django import DjangoModelFactory, Password

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.sites.models import PerforceServer, Site
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state

PASSWORD = "correct horse battery staple"


class UserFactory(DjangoModelFactory[User]):
    class Meta:
        model = User

    username = factory.Sequence(lambda n: f"user{n}")
    uid = factory.Sequence(lambda n: 20001 + n)
    gid = 20000

    password = Password(PASSWORD)


class PerforceServerFactory(DjangoModelFactory[PerforceServer]):
    class Meta:
        model = PerforceServer

    name = factory.Sequence(lambda n: f"perforce{n}")
    p4port = "127.0.0.1:9"  # the discard port: nothing answers there
    p4user = "cloneyard"


class SiteFactory(DjangoModelFactory[Site]):
    class Meta:
        model = Site

    name = factory.Sequence(lambda n: f"site{n}")
    perforce_server = factory.SubFactory(PerforceServerFactory)
    ontap_host = "127.0.0.1"
    ontap_port = 9
    ontap_user = "admin"
    svm = "svm_dev"
    aggregate = "aggr1"
    mount_root = "/nonexistent/cloneyard"
    export_clients = factory.LazyFunction(lambda: ["127.0.0.1"])
    template_uid = 20000
    template_gid = 20000


class TemplateFactory(DjangoModelFactory[Template]):
    class Meta:
        model = Template

    site = factory.SubFactory(SiteFactory)
    name = factory.Sequence(lambda n: f"main{n}")
    view = "//depot/main/... //template/..."
    created_by = factory.SubFactory(UserFactory, is_staff=True)


class SnapshotFactory(DjangoModelFactory[Snapshot]):
    class Meta:
        model = Snapshot

    template = factory.SubFactory(TemplateFactory)
    name = factory.Sequence(lambda n: f"c100.b{n}")
    ontap_uuid = factory.Faker("uuid4")
    change = 100
    client_spec = (
        "Client:\ttemplate\n\nOwner:\tcloneyard\n\nRoot:\t/t\n\n"
        "Options:\tnoallwrite noclobber nocompress unlocked nomodtime normdir\n\n"
        "SubmitOptions:\tsubmitunchanged\n\nLineEnd:\tlocal\n\n"
        "View:\n\t//depot/main/... //template/...\n"
    )
    have_count = 1
    have_digest = "0" * 64


def purge(workspace: Workspace) -> None:
    """Move a workspace that is being retired through the trash to its end."""
    for state in (
        Workspace.State.TRASHED,
        Workspace.State.PURGING,
        Workspace.State.RETIRED,
    ):
        set_workspace_state(workspace, state)
