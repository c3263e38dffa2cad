"""A demo for one benchmark, below a directory that is gone afterwards."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from provisioner.demo.processes import Child
    from provisioner.demo.run import Demo
    from provisioner.workspaces.models import Site, Template

REPOSITORY = Path(__file__).resolve().parents[2]
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
    place = _place()
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


def _place() -> Path:
    """Return a directory of our own, for everything; it is removed at exit."""
    sys.path.insert(0, str(REPOSITORY))
    place = Path(tempfile.mkdtemp(prefix="cloneyard-bench-", dir="/var/tmp"))
    place.chmod(0o755)
    os.environ["VAR_DIR"] = str(place / "var")
    os.environ.pop("DATABASE_URL", None)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "provisioner.settings")
    os.environ.setdefault("DEBUG", "true")
    os.environ["API_WORKSPACES_PER_MINUTE"] = "1000"
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    # Registered first, so run last: PostgreSQL lets go of its place at exit, too.
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def _tree(root: Path) -> Path:
    """Write the files of the template."""
    root.mkdir()
    for number in range(FILES):
        (root / f"file{number}.txt").write_text(f"line of {number}\n" * 20)
    return root
