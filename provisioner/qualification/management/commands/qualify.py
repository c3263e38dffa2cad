"""Accept an installation: `manage.py qualify --site munich --server production`."""

from __future__ import annotations

import argparse
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from provisioner.accounts.models import User
from provisioner.lib.refusals import ActionRefused
from provisioner.qualification.acceptance import Line, accept, what_else
from provisioner.qualification.actions.running import run_start
from provisioner.qualification.models import QualificationRun
from provisioner.qualification.profiles import BY_CODE
from provisioner.qualification.reports import figure_lines
from provisioner.sandboxes.models import Sandbox
from provisioner.sites.models import PerforceServer, Site

LOOKS_EVERY_SECONDS = 0.5
# As a shell has it: something does not hold.
DOES_NOT_HOLD = 1


class Command(BaseCommand):
    help = (
        "Check what Cloneyard needs of a site's ONTAP and of a Perforce server, and "
        "how long it takes. The exit code is 0 if everything holds, otherwise 1."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--site", required=True, help="Its name.")
        parser.add_argument("--server", required=True, help="Its name.")
        parser.add_argument(
            "--without-trial",
            action="store_true",
            help="Make no volume and no clone. Otherwise run it on a host of the site.",
        )
        parser.add_argument(
            "--profile",
            choices=list(BY_CODE),
            help="Measure the server, too, or a sandbox of it. It needs workers.",
        )
        parser.add_argument("--sandbox", help="One that is ready, for --profile.")
        parser.add_argument("--user", help="Who measures, for --profile.")
        parser.add_argument("--files", type=int, help="Of the profile's data.")
        parser.add_argument("--repeats", type=int)

    def handle(self, *args: Any, **options: Any) -> None:
        site = _named(Site, options["site"], "site")
        server = _named(PerforceServer, options["server"], "Perforce server")
        lines = list[Line]()
        for line in accept(site, server, tries=not options["without_trial"]):
            if not lines or lines[-1].part != line.part:
                self.stdout.write(f"\n{line.part}")
            self.stdout.write(f"  {line.text}")
            lines.append(line)
        holds = all(line.holds for line in lines)
        if options["profile"]:
            holds = self._measure(server, options) and holds
        failed = sum(not line.holds for line in lines)
        self.stdout.write(
            f"\n{len(lines) - failed} of {len(lines)} checks hold at {site.name} with "
            f"{server.name}."
        )
        for said in what_else(site, server):
            self.stdout.write(said)
        if not holds:
            raise CommandError("It does not hold.", returncode=DOES_NOT_HOLD)

    def _measure(self, server: PerforceServer, options: dict[str, Any]) -> bool:
        """Run a profile and wait for its end; return whether it was measured."""
        user = User.objects.filter(username=options["user"] or "").first()
        if user is None:
            raise CommandError("Say who measures: --user NAME.")
        sandbox = None
        if options["sandbox"]:
            sandbox = _named(Sandbox, options["sandbox"], "sandbox")
        try:
            run = run_start(
                by=user,
                profile=options["profile"],
                sandbox=sandbox,
                server=None if sandbox else server,
                files=options["files"],
                repeats=options["repeats"],
            )
        except ActionRefused as refusal:
            raise CommandError(refusal.sentence, returncode=DOES_NOT_HOLD) from refusal
        self.stdout.write(f"\nRun {run.pk}: {run.described.title}")
        while run.state == QualificationRun.State.RUNNING:
            time.sleep(LOOKS_EVERY_SECONDS)
            run.refresh_from_db()
        for line in figure_lines(run):
            self.stdout.write(f"  {line.figure.title}: {line.average_text}")
        if run.status_message:
            self.stdout.write(f"  {run.status_message}")
        return run.state == QualificationRun.State.DONE


def _named(model: Any, name: str, word: str) -> Any:
    found = model.objects.filter(name=name).first()
    if found is None:
        raise CommandError(f"There is no {word} “{name}”.")
    return found
