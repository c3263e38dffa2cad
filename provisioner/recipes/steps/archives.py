"""How the archives of a sandbox are verified, depot by depot. Safe to repeat.

Source: p4 help verify; "Verifying files by signature" of the Helix Core administrator's
guide. Which depots are left out follows the nightly verification of Perforce's Server
Deployment Package, which leaves out remote and archive depots.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from django.db import transaction
from django.db.models import F

from provisioner.gateways import registry
from provisioner.gateways.errors import AuthFailed, Refused
from provisioner.gateways.perforce.types import DamagedRevision, Depot
from provisioner.lib import clocks
from provisioner.lib.refusals import StepRefused
from provisioner.recipes.models import (
    MOST_LISTED,
    DamagedFile,
    Verification,
    VerifiedDepot,
)
from provisioner.sandboxes.steps.run import SandboxRun

WRITTEN_AT_A_TIME = 200
LEFT_OUT = {
    "remote": "A remote depot: its files are at another server.",
    "archive": "An archive depot: its files may be offline.",
    "unload": "An unload depot: it has clients and labels, no files.",
    "graph": "A graph depot: p4 verify does not read Git objects.",
}


def ensure_verified(run: SandboxRun) -> None:
    """Read all files of each depot. Depots that an earlier attempt did are kept.

    Raises: StepRefused (the account may not).
    """
    with run.writing():
        verification, _ = Verification.objects.get_or_create(sandbox=run.sandbox)
    account = replace(
        registry.perforce_account(run.server), port=run.sandbox.p4port, fingerprint=""
    )
    archives = registry.perforce_as(account).archives
    try:
        depots = archives.depots()
        for number, depot in enumerate(depots):
            run.progress(f"//{depot.name}", done=number, total=len(depots))
            _verify(run, verification, depot, archives.verify)
    except AuthFailed as error:
        raise StepRefused(
            f"{error.sentence} In a sandbox, external logins are switched off: the "
            f"account {account.user} needs a password in Perforce's own database.",
            code="sandbox_login_failed",
        ) from error
    except Refused as error:
        raise StepRefused(error.sentence, code="verify_refused") from error
    with run.writing():
        Verification.objects.filter(pk=verification.pk, ended_at__isnull=True).update(
            ended_at=clocks.database_now()
        )


def _verify(
    run: SandboxRun,
    verification: Verification,
    depot: Depot,
    verify: Callable[..., None],
) -> None:
    rows = VerifiedDepot.objects.filter(verification=verification, name=depot.name)
    with run.writing():
        if rows.filter(seconds__isnull=False).exists():
            return
        rows.delete()
        row = VerifiedDepot.objects.create(
            verification=verification,
            name=depot.name,
            kind=depot.kind[:40],
            left_out=LEFT_OUT.get(depot.kind, ""),
        )
    if row.left_out:
        return
    found = FoundDamage(run, row)
    began = time.monotonic()
    verify(depot.name, found=found.take)
    found.write()
    with run.writing():
        VerifiedDepot.objects.filter(pk=row.pk).update(seconds=time.monotonic() - began)


class FoundDamage:
    """Counts and lists what is damaged in a depot, some rows at a time."""

    def __init__(self, run: SandboxRun, depot: VerifiedDepot) -> None:
        self._run = run
        self._depot = depot
        self._waiting: list[DamagedRevision] = []
        self._listed = 0

    def take(self, revision: DamagedRevision) -> None:
        self._waiting.append(revision)
        if len(self._waiting) >= WRITTEN_AT_A_TIME:
            self.write()

    def write(self) -> None:
        listed = self._waiting[: MOST_LISTED - self._listed]
        bad = sum(each.status == "BAD" for each in self._waiting)
        run = self._run
        with run.writing(), transaction.atomic():
            DamagedFile.objects.bulk_create(
                DamagedFile(
                    depot=self._depot,
                    path=each.path,
                    revision=each.revision,
                    change=each.change,
                    status=each.status.lower(),
                )
                for each in listed
            )
            VerifiedDepot.objects.filter(pk=self._depot.pk).update(
                bad=F("bad") + bad, missing=F("missing") + len(self._waiting) - bad
            )
        self._listed += len(listed)
        self._waiting.clear()
