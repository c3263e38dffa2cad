"""Everything on one machine, with the lab: what `make demo` runs."""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from provisioner.catalog.models import Template
from provisioner.demo import seed
from provisioner.demo.processes import ProcessFailed
from provisioner.demo.run import Demo, DemoFailed, DemoOptions
from provisioner.workspaces.models import Workspace


class Command(BaseCommand):
    help = "Start the lab, a worker and the web server, and make a workspace."
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--source", type=Path, help="Your own tree instead of Django's."
        )
        parser.add_argument("--build", default="", help="Its build command.")
        parser.add_argument(
            "--ignore", default="", help="What its build makes, as P4IGNORE patterns."
        )
        parser.add_argument(
            "--btrfs",
            default="",
            metavar="SIZE",
            help="Keep the lab's volumes in a btrfs image of this size (as root).",
        )
        parser.add_argument(
            "--company",
            action="store_true",
            help="Fill it with half a year of a studio, where it is new.",
        )
        parser.add_argument(
            "--two-sites",
            action="store_true",
            help="Mirror the template, and replicate the server “production”, to a "
            "second site with an ONTAP of its own.",
        )
        parser.add_argument(
            "--once", action="store_true", help="Make, check, retire, and stop."
        )
        parser.add_argument(
            "--json", action="store_true", help="With --once: a JSON object at the end."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        source: Path | None = options["source"]
        if source is not None and not source.is_dir():
            raise CommandError(f"SOURCE={source} is not a directory.")
        if source is not None and not options["build"]:
            raise CommandError("SOURCE needs a BUILD, such as BUILD='make'.")
        if options["two_sites"] and options["company"]:
            raise CommandError("--company has sites of its own, without --two-sites.")
        demo_options = DemoOptions(
            source=source.resolve() if source else None,
            build=options["build"],
            ignore=options["ignore"].replace(",", "\n"),
            btrfs=options["btrfs"],
            has_company=options["company"],
            has_two_sites=options["two_sites"],
        )
        signal.signal(signal.SIGTERM, _interrupt)
        # What happens is said in sentences here; the worker's log has the events.
        logging.getLogger("provisioner").setLevel(logging.WARNING)
        try:
            with Demo(demo_options, say=self._say) as demo:
                site = demo.start()
                if options["once"]:
                    report = demo.run_once(site)
                else:
                    template, _ = demo.build_template(site, name=demo.fill_depot())
                    if demo.has_two_sites:
                        demo.mirror(template, copies_workspaces=True)
                    workspace = _workspace_of(demo, template)
                    demo.open_production(site)
                    self._show(demo, workspace)
                    demo.serve()
        except (DemoFailed, ProcessFailed) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            self._say("Stopped.")
            return
        if options["json"]:
            self.stdout.write(json.dumps(report))
        if not report["ok"]:
            failed = [c["name"] for c in report["checks"] if not c["ok"]]
            self._say(f"Failed: {failed}; left behind: {report['left_behind']}")
            sys.exit(1)

    def _say(self, line: str) -> None:
        self.stderr.write(line, style_func=str)  # news, not an error: no red
        self.stderr.flush()

    def _show(self, demo: Demo, workspace: Workspace) -> None:
        has_company = demo.options.has_company
        people = "\n".join(
            f"    {person.username:<8} {seed.PASSWORD:<12} "
            f"{person.what_in_company if has_company else person.what}"
            for person in seed.PEOPLE
        )
        self.stdout.write(
            f"\nCloneyard is at {demo.url}\n\n  Sign in as\n{people}\n\n"
            f"  alice's workspace {workspace.name} is ready:\n"
            f"    {workspace.path}\n"
            f"    client {workspace.client_name}, change {workspace.snapshot.change}, "
            f"{workspace.snapshot.have_count:,} files\n\n"
            f"  Logs are in {demo.log_dir}. Ctrl-C stops everything; `make clean` "
            "forgets it.\n"
        )
        if has_company:
            self.stdout.write(
                "  Everybody else in the studio has this password, too: see People. "
                "Its trees are\n  names without contents until they are built here.\n"
            )
        self.stdout.write(
            "  A second server, production, is there for sandboxes: alice may have "
            "one, admin several.\n"
            "  admin makes its checkpoints and verifies its archives, too.\n"
        )
        if demo.has_two_sites:
            self.stdout.write(
                f"  The template is mirrored to {seed.BANGALORE}: choose that site "
                "for a workspace there.\n  Workspaces for development are copied to "
                "the other site.\n"
            )
        if demo.spare_site is not None:
            self.stdout.write(
                f"  production is replicated to {demo.spare_site}: admin starts a "
                "disaster drill of it.\n"
            )
        if os.geteuid() != 0:
            self.stdout.write(
                "  Not running as root: files keep this user's uid, and junctions are "
                "symlinks.\n"
            )
        self.stdout.flush()


def _workspace_of(demo: Demo, template: Template) -> Workspace:
    """Return alice's workspace of the template, making it if necessary."""
    ready = Workspace.objects.filter(
        owner__username="alice", template=template, state=Workspace.State.READY
    ).first()
    if ready is not None:
        return ready
    workspace, _ = demo.provision(template)
    return workspace


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
