"""What a drill does once its server answers."""

from __future__ import annotations

from django.db.models.functions import Coalesce

from provisioner.drills.models import Drill
from provisioner.gateways import registry
from provisioner.gateways.errors import AuthFailed, Refused
from provisioner.lib import clocks
from provisioner.sandboxes.steps.run import SandboxRun, account_at


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
