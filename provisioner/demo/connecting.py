"""A site of the lab in an installation: `cloneyard-server lab --connect`.

What an administrator would enter on pages for an array and a Perforce server: a trial
needs nothing else to get to the first workspace.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django
from django.db import DatabaseError, connection

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Template
from provisioner.catalog.queries import default_snapshot
from provisioner.demo import depot, seed

POLL_EVERY_SECONDS = 2.0
FIRST_UID = 20003
BYTECODE = "*.pyc\n__pycache__\n"
Say = Callable[[str], None]


def connect(lab: dict[str, Any], *, by: User, root: Path, say: Say) -> Template:
    """Ensure a site for the lab, with a template of a small tree, and its first build.

    by: who enters it. Without a uid they get one, since they are to own workspaces.
    root: the lab's, which is all that it shares with host workers in containers.
    """
    if by.uid is None:
        by.uid, by.gid = FIRST_UID, seed.GID
        by.save(update_fields=["uid", "gid"])
        say(f"{by.username} owns files as uid {by.uid}, since there was none.")
    source = Path(django.__file__).parent / "db"
    name = f"django-{source.name}"
    fill_depot(lab["perforce"], source, name=name, user=by.perforce_name, root=root)
    site = seed.ensure_site(lab=lab, by=by, rescue_root=root / "rescue")
    template = seed.ensure_template(
        by=by,
        site=site,
        name=name,
        build=f"{sys.executable} -m compileall -q .",
        ignore=BYTECODE,
    )
    say(f"The site {site.name} is connected, with the template {template.name}.")
    is_new = not template.operations.exists()
    if is_new and default_snapshot(template) is None:
        template_build(by=by, template=template)
        say(f"It is built as soon as a worker serves host.{site.name}.")
    return template


def fill_depot(
    perforce: dict[str, Any], source: Path, *, name: str, user: str, root: Path
) -> None:
    """Submit a tree, and make the Perforce user who is to read it."""
    scratch = root / "import"
    scratch.mkdir(parents=True, exist_ok=True)
    account = depot.DepotAccount(
        port=perforce["port"], user=perforce["user"], password=perforce["password"]
    )
    p4 = depot.connect(account, client="lab-import", scratch=scratch)
    try:
        p4.run("configure", "set", "monitor=1")  # its processes are a page, too
        depot.create_p4_user(p4, user=user, password=seed.PASSWORD)
        depot.fill_depot(p4, source=source, name=name, scratch=scratch)
    finally:
        p4.disconnect()


def wait_for_administrator(*, is_stopped: Callable[[], bool], say: Say) -> User | None:
    """Return the first administrator, once there is one; None after a stop."""
    is_said = False
    while not is_stopped():
        try:
            found = User.objects.filter(is_superuser=True, is_active=True).first()
        except DatabaseError:
            found = None  # it is started, or migrated, at the same time
            connection.close()
        if found is not None:
            return found
        if not is_said:
            say("Waiting for an administrator: cloneyard-server createsuperuser")
        is_said = True
        time.sleep(POLL_EVERY_SECONDS)
    return None
