"""Make, transfer and delete the copies that rules ask for, a few at a time."""

from __future__ import annotations

import datetime as dt

import structlog
from procrastinate.contrib.django import app

from provisioner.accounts.system import system_user
from provisioner.copies.actions import begin_deletion, begin_transfer, put_off
from provisioner.copies.models import CopyRule, WorkspaceCopy
from provisioner.copies.queries import (
    due_copies,
    superfluous_copies,
    workspaces_without_copy,
)
from provisioner.copies.refusals import CopyBusy
from provisioner.lib import clocks
from provisioner.lib.limits import LimitReached

log = structlog.get_logger(__name__)

MADE_AT_ONCE = 50


@app.periodic(cron="* * * * *")
@app.task(name="sweep_copies", queue="sweeps", queueing_lock="sweep_copies")
def sweep_copies(timestamp: int) -> None:
    """Do what is due."""
    tend_all(now=clocks.database_now())


def tend_all(*, now: dt.datetime) -> int:
    """Make rows of copies, begin deletions and transfers; return how many began.

    As few run at once, copies that are switched on for many workspaces spread out by
    themselves.
    """
    by = system_user()
    began = 0
    for rule in CopyRule.objects.select_related("site", "second_site"):
        for site, workspaces in workspaces_without_copy(rule):
            for workspace in workspaces[:MADE_AT_ONCE]:
                WorkspaceCopy.objects.get_or_create(
                    workspace=workspace,
                    site=site,
                    defaults={
                        "name": f"{workspace.name} at {site.name}",
                        "due_at": now,
                    },
                )
    for copy in superfluous_copies(now=now):
        try:
            begin_deletion(by=by, copy=copy)
            began += 1
        except CopyBusy:
            log.info("copy_not_deleted", copy_id=copy.pk)
    for copy in due_copies(now=now):
        try:
            begin_transfer(by=by, copy=copy)
            began += 1
        except CopyBusy:
            log.info("copy_not_transferred", copy_id=copy.pk)
        except LimitReached as refused:
            put_off(copy, why=refused.sentence)
    return began
