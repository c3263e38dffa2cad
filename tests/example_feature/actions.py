"""What people ask for."""

from __future__ import annotations

from django.db import transaction

from provisioner.accounts.models import User
from provisioner.engine.starting import start_operation
from provisioner.sites.models import Site
from tests.example_feature.models import Errand, ErrandOperation


@transaction.atomic
def errand_run(*, by: User, site: Site, name: str) -> Errand:
    """Begin an errand."""
    errand = Errand.objects.create(owner=by, site=site, name=name)
    start_operation(ErrandOperation.RUN, about=errand, by=by)
    return errand
