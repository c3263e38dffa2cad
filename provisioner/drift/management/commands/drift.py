"""Check every site for drift: `python manage.py drift [--site munich] [--json]`.

With `--adopt` workspaces and snapshots that an older backup does not know get rows
again; with `--adopt --dry-run` they are listed.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import QuerySet
from django.urls import reverse

from provisioner.drift.actions import adoptable
from provisioner.drift.comparison.previews import preview
from provisioner.drift.models import DriftCheck, FarSide, Finding
from provisioner.drift.repairs import repair
from provisioner.drift.sweeps.checks import run_drift_check
from provisioner.sites.models import Site


class Command(BaseCommand):
    help = (
        "Compare database, ONTAP and Perforce from here, and do what cannot lose work. "
        "Exits with 1 if a system could not be checked."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--site", help="One site, by name; else all.")
        parser.add_argument("--json", action="store_true", help="One JSON object.")
        parser.add_argument(
            "--adopt",
            action="store_true",
            help="Adopt what is missing from the database, as after an older backup "
            "was restored. Not for a copy of the database: what is missing there "
            "belongs to the original.",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Say what --adopt would do."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        sites = Site.objects.select_related("perforce_server").order_by("name")
        if options["site"]:
            sites = sites.filter(name=options["site"])
            if not sites:
                raise CommandError(f"There is no site “{options['site']}”.")
        runs = [
            run_drift_check(site, system=system) for site in sites for system in FarSide
        ]
        findings = list(
            Finding.objects.filter(site__in=sites, resolved_at=None).order_by("pk")
        )
        if options["adopt"]:
            self._adopt(sites, is_dry_run=options["dry_run"])
        elif options["json"]:
            self.stdout.write(_as_json(runs, findings))
        else:
            self._print(runs, findings)
        if any(run.status_message for run in runs):
            raise CommandError("Not everything could be checked.", returncode=1)

    def _adopt(self, sites: QuerySet[Site], *, is_dry_run: bool) -> None:
        for finding in adoptable().filter(site__in=sites):
            self.stdout.write(f"{finding}")
            if is_dry_run:
                self.stdout.write("\n".join(f"    {line}" for line in preview(finding)))
                continue
            repair(finding, by=None)
            finding.refresh_from_db()
            self.stdout.write(f"    {finding.resolution or finding.status_message}")

    def _print(self, runs: list[DriftCheck], findings: list[Finding]) -> None:
        for run in runs:
            seen = run.status_message or f"{run.objects_seen} of ours"
            self.stdout.write(f"{run}: {seen}")
        for finding in findings:
            by_itself = ", or automatically" if finding.is_automatic else ""
            self.stdout.write(
                f"{finding}\n    {finding.sentence}\n    To do: {finding.action_title}"
                f"{by_itself}: {reverse('finding-detail', args=[finding.pk])}"
            )
        self.stdout.write(f"{len(findings)} open findings.")


def _as_json(runs: list[DriftCheck], findings: list[Finding]) -> str:
    return json.dumps(
        {
            "runs": [
                {
                    "site": run.site.name,
                    "system": run.system,
                    "objects_seen": run.objects_seen,
                    "seconds": round(run.seconds, 3),
                    "failed": run.status_message,
                }
                for run in runs
            ],
            "findings": [
                {
                    "id": finding.pk,
                    "kind": finding.kind,
                    "subject": finding.subject,
                    "sentence": finding.sentence,
                    "action": finding.action,
                    "is_automatic": finding.is_automatic,
                    "times_seen": finding.times_seen,
                }
                for finding in findings
            ],
        }
    )
