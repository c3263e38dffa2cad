"""p4d of a copy: where it writes, what a copy's database holds, where links lead."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from provisioner.gateways import fence
from provisioner.gateways.hosts.p4d import P4d, StoredSetting
from provisioner.lib.refusals import StepRefused
from provisioner.sandboxes.steps.containing import (
    require_depots_within,
    require_unknown,
)

# It writes down its words, and gives the records of ROWS for a dump.
PROGRAM = """#!/bin/sh
here=$(dirname "$0")
echo "$*" >> "$here/said"
while [ $# -gt 0 ]; do
  [ "$1" = -jd ] && { [ -e "$2" ] && exit 1; cat "$here/rows" > "$2"; }
  shift
done
exit 0
"""


@pytest.fixture
def p4d(tmp_path: Path) -> P4d:
    program, root = tmp_path / "p4d", tmp_path / "clones" / "root"
    root.mkdir(parents=True)
    program.write_text(PROGRAM)
    program.chmod(0o755)
    tmp_path.chmod(0o755)
    (tmp_path / "rows").write_text("")
    return P4d(
        program=str(program),
        root=root,
        journal=tmp_path / "clones" / "journal",
        log=root / "log",
        uid=os.geteuid(),
        gid=os.getegid(),
        tag="one",
    )


def test_no_command_writes_a_journal_or_log_that_the_copys_settings_name(
    p4d: P4d, tmp_path: Path
) -> None:
    p4d.unset(StoredSetting(server="any", name="P4JOURNAL", value="/p4/1/logs/journal"))
    p4d.set("server.depot.root", "/clones/depots")
    p4d.give_id("sandbox-try")
    p4d.replay(p4d.journal)
    p4d.remove_rows("db.trigger", scratch="dump")
    p4d.upgrade(within_seconds=5)

    said = (tmp_path / "said").read_text().splitlines()
    *others, upgrade = said
    assert len(others) == 5
    for line in others:
        assert line.startswith(f"-r {p4d.root} -J off -L {p4d.log} ")
    assert upgrade == f"-r {p4d.root} -J {p4d.journal} -L {p4d.log} -xu"


def test_a_dump_that_was_cut_off_is_not_in_the_way(p4d: P4d, tmp_path: Path) -> None:
    (p4d.root / "dump").write_text("half")
    (tmp_path / "rows").write_text("whole\n")

    assert p4d.dump("db.depot", scratch="dump") == b"whole\n"
    assert not (p4d.root / "dump").exists()


@pytest.mark.parametrize(
    ("row", "is_refused"),
    [
        ("@depot@ 0 @@ @depot/...@", False),
        ("@depot@ 0 @@ @/p4/1/depots/depot/...@", True),
        ("@depot@ 3 @@ @../depots/depot/...@", True),
        ("@other@ 1 @partner:1666@ @//depot/...@", False),
    ],
)
def test_depots_at_paths_of_the_original_are_refused(
    p4d: P4d, tmp_path: Path, row: str, is_refused: bool
) -> None:
    (tmp_path / "rows").write_text(f"@pv@ 1 @db.depot@ {row} \n")
    if not is_refused:
        require_depots_within(p4d)
        return
    with pytest.raises(StepRefused, match="The Map of depot") as refused:
        require_depots_within(p4d)
    assert refused.value.code == "depot_maps_lead_out"


def test_a_server_id_that_a_specification_has_is_refused(
    p4d: P4d, tmp_path: Path
) -> None:
    (tmp_path / "rows").write_text("@pv@ 7 @db.server@ @Edge-Oslo@ 1 @@ @@ @@ \n")

    require_unknown(p4d, "sandbox-edge")
    with pytest.raises(StepRefused) as refused:
        require_unknown(p4d, "edge-oslo")
    assert refused.value.code == "server_id_of_a_server"


def test_links_out_of_the_clones_are_found_before_they_are_followed(
    p4d: P4d, tmp_path: Path
) -> None:
    clones, original = tmp_path / "clones", tmp_path / "original"
    (original / "root").mkdir(parents=True)
    depots = clones / "depots"
    (depots / "depot" / "game").mkdir(parents=True)
    (depots / "inside").symlink_to("depot/game")
    (depots / "depot" / "art").symlink_to(original)
    (depots / "depot" / "game" / "old").symlink_to("../../../../original")
    linked = clones / "linked"
    linked.symlink_to(original / "root")

    assert p4d.links_out(depots, within=[clones], deep=3) == [
        *("depot/art", "depot/game/old"),
    ]
    assert p4d.links_out(linked, within=[clones], deep=1) == ["."]
    assert p4d.links_out(clones / "journal", within=[clones], deep=0) == []


def test_nothing_of_a_copy_changes_without_leave(p4d: P4d, tmp_path: Path) -> None:
    def refuse() -> None:
        raise PermissionError

    (p4d.root / "license").write_text("")
    with fence.asking(refuse):
        for act in (
            partial(p4d.set, "monitor", "1"),
            partial(p4d.give_id, "sandbox-try"),
            partial(p4d.replay, p4d.journal),
            partial(p4d.remove, "license"),
            partial(p4d.remove_rows, "db.trigger", scratch="dump"),
            partial(p4d.upgrade, within_seconds=5),
            partial(p4d.start, "127.0.0.1:16660"),
        ):
            with pytest.raises(PermissionError):
                act()

    assert (p4d.root / "license").exists()
    assert not (tmp_path / "said").exists()
