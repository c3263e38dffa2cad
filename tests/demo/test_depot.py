"""Filling the demo's depot, whatever the files are called."""

from __future__ import annotations

from pathlib import Path

from provisioner.demo import depot
from provisioner.gateways.perforce.library import as_text
from tests.support.lab import Lab

EVERY_BYTE = [as_text(b"a" + bytes([byte])) for byte in {*range(1, 256)} - {ord("/")}]
LATIN = as_text("caf\u00e9/\u00e9t\u00e9.txt".encode("latin-1"))


def test_a_tree_with_a_file_for_every_byte_is_submitted(
    lab: Lab, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    for name in [*EVERY_BYTE, LATIN]:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("1\n")
    p4 = lab.as_admin()
    try:
        change = depot.fill_depot(p4, source=source, name="bytes", scratch=tmp_path)
        again = depot.fill_depot(p4, source=source, name="bytes", scratch=tmp_path)
        depot_files = p4.run("files", "-e", "//depot/bytes/...")
    finally:
        p4.disconnect()

    assert again == change
    awkward = [f for f in depot_files if "/awkward/" in f["depotFile"]]
    assert len(depot_files) - len(awkward) == len(EVERY_BYTE) + 1
