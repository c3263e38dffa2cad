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
    VerificationPlan,
    VerifiedDepot,
)
from provisioner.sandboxes.queries import plan_of
from provisioner.sandboxes.steps.run import SandboxRun

WRITTEN_AT_A_TIME = 200
LEFT_OUT = {
    "remote": "A remote depot: its files are at another server.",
    "archive": "An archive depot: its files may be offline.",
    "unload": "An unload depot: it has clients and labels, no files.",
    "graph": "A graph depot: p4 verify does not read Git objects.",
}


def ensure_verified(run: SandboxRun) -> None:
    """Read all files of each depot, and those that are shelved if the plan says so.

    What an earlier attempt did of a depot is kept.

    Raises: StepRefused (the account may not).
    """
    with run.writing():
        verification, _ = Verification.objects.get_or_create(sandbox=run.sandbox)
    account = replace(
        registry.perforce_account(run.server), port=run.sandbox.p4port, fingerprint=""
    )
    archives = registry.perforce_as(account).archives
    has_shelved = plan_of(VerificationPlan, run.server).has_shelved
    try:
        depots = archives.depots()
        for number, depot in enumerate(depots):
            run.progress(f"//{depot.name}", done=number, total=len(depots))
            row = _row_of(run, verification, depot)
            if row.left_out:
                continue
            if row.seconds is None:
                _verify(run, row, archives.verify)
            if has_shelved and row.shelved_seconds is None:
                _verify(run, row, archives.verify_shelved, of="shelved_")
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


def _row_of(run: SandboxRun, verification: Verification, depot: Depot) -> VerifiedDepot:
    """Return the row of a depot, as an earlier attempt left it."""
    with run.writing():
        row, _ = VerifiedDepot.objects.get_or_create(
            verification=verification,
            name=depot.name,
            defaults={
                "kind": depot.kind[:40],
                "left_out": LEFT_OUT.get(depot.kind, ""),
            },
        )
    return row


def _verify(
    run: SandboxRun, row: VerifiedDepot, verify: Callable[..., None], *, of: str = ""
) -> None:
    """Read the revisions of a depot, or `of` it what is shelved, from the beginning."""
    rows = VerifiedDepot.objects.filter(pk=row.pk)
    with run.writing(), transaction.atomic():
        row.damaged.filter(revision__isnull=bool(of)).delete()
        rows.update(**{f"{of}bad": 0, f"{of}missing": 0})
    found = FoundDamage(run, row, of=of)
    began = time.monotonic()
    verify(row.name, found=found.take)
    found.write()
    with run.writing():
        rows.update(**{f"{of}seconds": time.monotonic() - began})
    row.refresh_from_db()


class FoundDamage:
    """Counts and lists what is damaged in a depot, some rows at a time.

    `of` begins the names of the columns that count it.
    """

    def __init__(self, run: SandboxRun, depot: VerifiedDepot, *, of: str = "") -> None:
        self._run = run
        self._depot = depot
        self._of = of
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
            numbers = {"bad": bad, "missing": len(self._waiting) - bad}
            VerifiedDepot.objects.filter(pk=self._depot.pk).update(
                **{
                    f"{self._of}{name}": F(f"{self._of}{name}") + number
                    for name, number in numbers.items()
                }
            )
        self._listed += len(listed)
        self._waiting.clear()
