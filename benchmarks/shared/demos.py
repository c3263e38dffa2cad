"""A demo for one benchmark, below a directory that is gone afterwards."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shared.places import place_of_its_own

if TYPE_CHECKING:
    from provisioner.catalog.models import Template
    from provisioner.demo.processes import Child
    from provisioner.demo.run import Demo
    from provisioner.sites.models import Site

FILES = 200


@dataclass(frozen=True)
class Running:
    """What `make demo` has running, with a template that is built."""

    demo: Demo
    site: Site
    template: Template

    def child(self, name: str) -> Child:
        return next(child for child in self.demo.children if child.name == name)

    def start_again(self, child: Child) -> Child:
        """Start one that was stopped, in its place."""
        position = self.demo.children.index(child)
        self.demo.children[position] = child.started_again()
        return self.demo.children[position]


@contextmanager
def demo_of_its_own(*, clones_at_once: bool = False) -> Iterator[Running]:
    """Give the lab, an embedded PostgreSQL, a worker, a web server and a template.

    With `clones_at_once` the lab clones as an array does, where we may mount.
    """
    place = place_of_its_own()
    os.environ["API_WORKSPACES_PER_MINUTE"] = "1000"
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    import django

    django.setup()
    from provisioner.demo.run import Demo, DemoOptions

    can_mount = os.geteuid() == 0 and shutil.which("mkfs.btrfs") is not None
    options = DemoOptions(
        source=_tree(place / "tree"),
        build="true",
        btrfs="8G" if clones_at_once and can_mount else "",
    )
    with Demo(options, say=lambda text: print(text, file=sys.stderr)) as demo:
        site = demo.start()
        template, _ = demo.build_template(site, name=demo.fill_depot())
        yield Running(demo, site, template)


def _tree(root: Path) -> Path:
    """Write the files of the template."""
    root.mkdir()
    for number in range(FILES):
        (root / f"file{number}.txt").write_text(f"line of {number}\n" * 20)
    return root
