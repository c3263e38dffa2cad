"""A seed and a moment say all of a company."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import transaction

from provisioner.accounts.system import system_user
from provisioner.audit_log.models import Event
from provisioner.demo import seed
from provisioner.demo.company.company import Company
from provisioner.demo.company.studio import CompanySize
from provisioner.drills.models import Drill
from provisioner.engine.models import Step
from provisioner.insight.models import ProgramUse
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.probes.models import ProbeTime
from provisioner.qualification.models import RunFigure
from provisioner.recipes.models import Checkpoint
from provisioner.server_log.models import LogSum
from provisioner.workspaces.models import Workspace

SUM = ("span", "by", "at", "name", "origin")
SMALL = CompanySize(
    people=40,
    templates=24,
    workspaces=60,
    build_share=0.04,
    deliveries=20,
    probe_days=2,
)


@pytest.mark.integration
@pytest.mark.django_db
def test_the_same_seed_and_moment_make_the_same_company() -> None:
    now = dt.datetime(2026, 11, 24, 15, 0, tzinfo=dt.UTC)
    seed.ensure_people()  # these come first, and their numbers with them
    system_user()
    pictures = []
    for _ in range(2):
        with transaction.atomic():
            Company(SMALL, now=now).found()
            pictures.append(
                (
                    list(Workspace.objects.order_by("pk").values_list()),
                    list(Mirror.with_deleted.order_by("pk").values_list()),
                    list(MirroredSnapshot.objects.order_by("pk").values_list()),
                    list(Step.objects.order_by("pk").values_list()),
                    list(ProbeTime.objects.order_by("pk").values_list()),
                    list(Checkpoint.objects.order_by("pk").values_list()),
                    list(Drill.objects.order_by("pk").values_list()),
                    list(RunFigure.objects.order_by("pk").values_list()),
                    list(ProgramUse.objects.order_by("pk").values_list()),
                    list(LogSum.objects.order_by(*SUM).values_list(*SUM, "lapse_ms")),
                    list(Event.objects.order_by("pk").values_list("at", "kind", "via")),
                )
            )
            transaction.set_rollback(True)
    assert all(pictures[0])
    assert pictures[0] == pictures[1]
