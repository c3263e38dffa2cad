"""What is refused since it leads out of the clones, to files of the original."""

from __future__ import annotations

import re
from pathlib import Path

from provisioner.gateways.hosts.p4d import P4d
from provisioner.lib.refusals import StepRefused
from provisioner.sandboxes.models import Role
from provisioner.sandboxes.steps.run import SandboxRun

SCRATCH = "cloneyard-dump"
# What production's processes left: locks, places in a journal, tickets and the license,
# which is bound to production's address.
LEFT_BEHIND = (
    *("server.locks", "state", "statejcopy", "statefailover", "rdb.lbr", "license"),
    *(".p4tickets", ".p4trust", ".p4config", "tiny.db", "server.extensions.dir"),
)
# Source: db.depot of the schema: name, type (1: remote), extra, map.
_DEPOT = re.compile(
    rb"^@[pr]v@ \d+ @db\.depot@ @(?P<name>(?:[^@]|@@)*)@ (?P<type>\d+) "
    rb"@(?:[^@]|@@)*@ @(?P<map>(?:[^@]|@@)*)@",
    re.MULTILINE,
)
DEPOT_LEVELS = 3
LINKS_NAMED = 5


def require_within(run: SandboxRun, p4d: P4d) -> None:
    """Refuse links out of the clones, before anything is written or removed by them.

    Of the archives only the upper directories are looked through: there may be
    millions below.

    Raises: StepRefused.
    """
    clones = [run.visible_root(volume.junction_path) for volume in run.volumes]
    depots = depot_root(run)
    looked_through = [(p4d.root, 1), (depots, DEPOT_LEVELS)]
    looked_through += [(file, 0) for file in (p4d.journal, p4d.log)]
    left = [
        str(directory / link)
        for directory, deep in looked_through
        for link in p4d.links_out(directory, within=clones, deep=deep)
        if directory != p4d.root or link not in LEFT_BEHIND
    ]
    if left:
        raise StepRefused(
            f"Links lead out of the clones: {', '.join(left[:LINKS_NAMED])}. A sandbox "
            "would follow them, perhaps to the original. Nothing was started. Describe "
            "the volume that they lead to, or replace them in the original.",
            code="links_lead_out",
        )


def require_depots_within(p4d: P4d) -> None:
    """Refuse a depot whose files are at a path of the original.

    A relative Map is below server.depot.root; a remote depot has none here.

    Raises: StepRefused.
    """
    found = _DEPOT.finditer(p4d.dump("db.depot", scratch=SCRATCH))
    outside = [
        each["name"].decode(errors="replace")
        for each in found
        if each["type"] != b"1"
        and (each["map"].startswith(b"/") or b".." in each["map"].split(b"/"))
    ]
    if outside:
        raise StepRefused(
            f"The Map of {', '.join(outside[:LINKS_NAMED])} is not below "
            "server.depot.root. A sandbox would write to the original's archives. "
            "Nothing was started. Give these depots a relative Map.",
            code="depot_maps_lead_out",
        )


def require_unknown(p4d: P4d, server_id: str) -> None:
    """Refuse a ServerID that a server specification of the copy has.

    Raises: StepRefused.
    """
    specs = p4d.dump("db.server", scratch=SCRATCH).lower()
    if b"@%s@" % server_id.lower().encode() in specs:
        raise StepRefused(
            f"The original has a server specification {server_id}. Nothing was "
            "started. Give the sandbox a ServerID of its own.",
            code="server_id_of_a_server",
        )


def depot_root(run: SandboxRun) -> Path:
    for volume in run.volumes:
        for place in volume.places.all():
            if place.role == Role.DEPOT:
                return run.path_of(place, volume)
    raise AssertionError("a described server has archives")
