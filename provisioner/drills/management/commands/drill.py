"""Plan and make disaster drills: `manage.py drill plan|now|stop|results --server X`.

    manage.py drill plan --server main --host spare --p4d 2024.2 \\
        --replica p4_db=p4_db_dr --replica p4_depot=p4_depot_dr --oldest-hours 24
"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from provisioner.accounts.system import system_user
from provisioner.drills.actions import drill_plan_save, drill_plan_stop, drill_start
from provisioner.drills.models import MONTHLY, Drill
from provisioner.lib.refusals import ActionRefused
from provisioner.sandboxes.models import P4dVersion, SandboxHost
from provisioner.sites.models import PerforceServer


class Command(BaseCommand):
    help = (
        "Bring a Perforce server up at another site from its last replicated copy, by "
        "a plan or now, and say what came of it."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("what", choices=("plan", "now", "stop", "results"))
        parser.add_argument("--server", required=True)
        parser.add_argument(
            "--host", help="A host of sandboxes at the site of the copies."
        )
        parser.add_argument("--p4d", help="A release of p4d.")
        parser.add_argument(
            "--replica",
            action="append",
            default=[],
            metavar="VOLUME=REPLICA",
            help="For each volume of the server, what SnapMirror fills from it.",
        )
        parser.add_argument("--cron", default=MONTHLY, help="UTC; monthly, unless told")
        parser.add_argument("--oldest-hours", type=int, default=24)

    def handle(self, *args: Any, **options: Any) -> None:
        server = self._named(PerforceServer, options["server"], field="name")
        try:
            match options["what"]:
                case "plan":
                    self._plan(server, options)
                case "now":
                    drill = drill_start(by=system_user(), server=server)
                    self.stdout.write(f"Began {drill.sandbox.name}.")
                case "stop":
                    drill_plan_stop(by=system_user(), server=server)
                    self.stdout.write("No more drills are made by plan.")
                case _:
                    self._results(server)
        except ActionRefused as refusal:
            raise CommandError(refusal.sentence) from refusal

    def _plan(self, server: PerforceServer, options: dict[str, Any]) -> None:
        pairs = [given.partition("=") for given in options["replica"]]
        if unclear := [given for given, sign, _ in pairs if not sign]:
            raise CommandError(f"“{unclear[0]}” is not VOLUME=REPLICA.")
        plan = drill_plan_save(
            by=system_user(),
            server=server,
            host=self._named(SandboxHost, options["host"], field="name"),
            version=self._named(P4dVersion, options["p4d"], field="release"),
            replicas={source: replica for source, _, replica in pairs},
            cron=options["cron"],
            oldest_hours=options["oldest_hours"],
            is_on=True,
        )
        assert plan.host is not None
        self.stdout.write(f"Planned at {plan.host.site.name}: {plan.cron}.")

    def _named(self, model: Any, name: str | None, *, field: str) -> Any:
        row = model.objects.filter(**{field: name}).first() if name else None
        if row is None:
            kind = model._meta.verbose_name
            raise CommandError(f"There is no {kind} “{name or ''}”.")
        return row

    def _results(self, server: PerforceServer) -> None:
        """Print a line for each drill, newest first."""
        drills = Drill.objects.filter(sandbox__perforce_server=server)
        for drill in drills.select_related("sandbox__site"):
            said = drill.trouble or drill.finding or "passed"
            if drill.ended_at is None:
                said = "running" if drill.is_running else "was stopped"
            at = f"{drill.requested_at:%Y-%m-%d %H:%M} UTC at {drill.sandbox.site.name}"
            self.stdout.write(
                f"{at}: {said}; copy {_seconds(drill.lost)} old, answered after "
                f"{_seconds(drill.took)}, change {drill.change or 'unknown'}"
            )


def _seconds(length: Any) -> str:
    return "?" if length is None else f"{length.total_seconds():.0f} s"
