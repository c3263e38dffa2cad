"""What a drill does before anything is cloned, and once its server answers."""

from __future__ import annotations

from django.db.models.functions import Coalesce

from provisioner.drills.models import Drill
from provisioner.engine.models import Step
from provisioner.gateways import registry
from provisioner.gateways.errors import AuthFailed, Refused
from provisioner.gateways.perforce.releases import p4d_release_in
from provisioner.insight.models import ServerConfiguration
from provisioner.lib import clocks
from provisioner.lib.typed_json import from_json
from provisioner.sandboxes.models import SandboxOperation
from provisioner.sandboxes.steps.checking import require_not_older
from provisioner.sandboxes.steps.run import Checked, SandboxRun, account_at
from provisioner.sites.models import PerforceServer


def ensure_known(run: SandboxRun) -> Checked:
    """Return what is recorded of the original: a drill is for the day it is gone.

    Of a release that is not known, "" is said, and the database is upgraded in any
    case. Whether it ignores case is as it was when a sandbox was made last.

    Raises: StepRefused (p4d older than its database).
    """
    known = _asked_last(run.server)
    read = ServerConfiguration.objects.filter(server=run.server).first()
    release = p4d_release_in(read.version) if read is not None else ""
    release = release or (known.release if known is not None else "")
    require_not_older(run, release)
    return Checked(
        release=release,
        server_id=run.server.server_id or (known.server_id if known else ""),
        is_case_sensitive=known is None or known.is_case_sensitive,
    )


def _asked_last(server: PerforceServer) -> Checked | None:
    """Return what a server said of itself when a sandbox of it was made last."""
    step = (
        Step.objects.filter(
            name=Checked.step,
            result__isnull=False,
            operation__subject__sandbox__perforce_server=server,
        )
        .exclude(operation__kind=SandboxOperation.DRILL)
        .order_by("-pk")
        .first()
    )
    return None if step is None else from_json(Checked, step.result)


def ensure_measured(run: SandboxRun) -> None:
    """Record the moment of the copy, when its server answered, and its last change.

    A server where our account has no password of its own answers, and does not say its
    change.
    """
    drills = Drill.objects.filter(sandbox=run.sandbox)
    run.sandbox.refresh_from_db(fields=["taken_at"])
    with run.writing():
        drills.update(
            copy_of=run.sandbox.taken_at,
            answered_at=Coalesce("answered_at", clocks.database_now()),
        )
    gateway = registry.perforce_as(account_at(run))
    try:
        change = gateway.changes.latest(("//...",))
    except (AuthFailed, Refused):
        return
    with run.writing():
        drills.update(change=change)
