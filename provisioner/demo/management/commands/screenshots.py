"""The pictures of the README: what `make screenshots` runs."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from provisioner.demo.chromium import NoChromium
from provisioner.demo.processes import ProcessFailed
from provisioner.demo.run import Demo, DemoFailed, DemoOptions
from provisioner.demo.screenshots import Picture, take
from provisioner.workspaces.models import Workspace


class Command(BaseCommand):
    help = "Start the demo with its company and write pictures of its pages."
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--directory",
            type=Path,
            default=settings.BASE_DIR / "docs" / "img",
            help="Where the pictures go.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        logging.getLogger("provisioner").setLevel(logging.WARNING)
        try:
            with Demo(DemoOptions(has_company=True), say=self._say) as demo:
                demo.start()
                take(
                    _pictures(),
                    url=demo.url,
                    directory=options["directory"],
                    say=self._say,
                )
        except (DemoFailed, ProcessFailed, NoChromium) as error:
            raise CommandError(str(error)) from error

    def _say(self, line: str) -> None:
        self.stderr.write(line, style_func=str)  # news, not an error: no red
        self.stderr.flush()


def _pictures() -> list[Picture]:
    """Return the pictures in the README."""
    workspace = Workspace.objects.filter(
        owner__username="alice", state=Workspace.State.READY
    ).latest("created_at")
    of_it = f"/workspaces/{workspace.pk}/"
    return [
        Picture(name="home", who="alice", path="/"),
        Picture(name="workspace", who="alice", path=of_it, height=1000),
        Picture(name="overview", who="admin", path="/overview/", scheme="dark"),
    ]
