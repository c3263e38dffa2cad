"""The company in a demo: founded if requested, with a lab that agrees with it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from provisioner.catalog.models import Template
from provisioner.demo import seed
from provisioner.demo.company import lab as company_lab
from provisioner.demo.company.company import Company
from provisioner.demo.company.places import ABROAD, BUILDS
from provisioner.demo.company.studio import CompanySize
from provisioner.sites.models import PerforceServer, Site

STUDIO = CompanySize()


class NotEmpty(Exception):
    """There is already a demo without a company. Delete it first: make clean."""


def ensure_company(
    *, is_wanted: bool, say: Callable[[str], None], size: CompanySize = STUDIO
) -> list[str]:
    """Fill an empty database with the company; return the lab's settings.

    An existing company stays, even when it is no longer requested.

    Raises: NotEmpty.
    """
    is_there = Site.objects.filter(name=ABROAD).exists()
    if not is_there and not is_wanted:
        return []
    files = settings.VAR_DIR / "demo" / "company"
    perforce = seed.lab_root().parent / "perforce" / "db.sqlite3"
    if not is_there:
        if Template.objects.exists() or perforce.exists():
            raise NotEmpty(NotEmpty.__doc__)
        _found(size, files=files, say=say)
    arguments = ["--peer", "--peer-svm", seed.SVM_ABROAD]
    arguments += ["--volumes", str(files / company_lab.VOLUMES)]
    if not perforce.exists():
        arguments += ["--restore", str(files / company_lab.CHECKPOINT)]
        arguments += ["--depots", str(files / company_lab.DEPOTS)]
    return arguments


def _found(size: CompanySize, *, files: Path, say: Callable[[str], None]) -> None:
    began = time.monotonic()
    company = Company(size, now=timezone.now())
    company.found()
    company_lab.write(company, directory=files)
    say(
        f"A studio of {company.size.people} people and {len(company.workspaces):,} "
        f"workspaces was made up ({time.monotonic() - began:.0f} s)."
    )


def point_abroad(lab: dict[str, Any]) -> None:
    """Point the company's other site at the lab's current ports."""
    peer = lab.get("peer")
    if peer is None:
        return
    os.environ[f"ONTAP_PASSWORD_{ABROAD.upper()}"] = peer["password"]
    Site.objects.filter(name=ABROAD).update(
        ontap_host=peer["host"],
        ontap_port=peer["port"],
        ontap_user=peer["user"],
        ontap_ca_file=peer["ca_file"],
        mount_root=peer["mount_root"],
    )
    perforce = lab["perforce"]
    there = PerforceServer.objects.filter(name__in=(ABROAD, BUILDS))
    there.update(p4port=perforce["port"])
