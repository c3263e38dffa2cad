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
from provisioner.engine.models import Step
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.workspaces.models import Workspace

SMALL = CompanySize(
    people=40, templates=24, workspaces=60, build_share=0.04, deliveries=20
)


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
                    list(Event.objects.order_by("pk").values_list("at", "kind", "via")),
                )
            )
            transaction.set_rollback(True)
    assert pictures[0] == pictures[1]
