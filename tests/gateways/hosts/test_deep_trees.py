"""A tree has any depth; a path has not. No walk of a tree ends with that."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from provisioner.gateways.hosts.ownership import change_ownership
from provisioner.gateways.hosts.recency import newest_modification
from provisioner.gateways.hosts.removal import remove_contents
from provisioner.gateways.hosts.root_paths import sample_root_paths
from provisioner.gateways.hosts.sampling import sample_ownership
from provisioner.gateways.hosts.tree_remarks import remarks_on_tree
from provisioner.gateways.hosts.trees.run import Walker
from provisioner.gateways.hosts.untracked import leaves_below
from tests.gateways.hosts.trees import (
    GROUP,
    OWNER,
    Chain,
    deep_chain,
    needs_root,
)


def test_untracked_files_are_found_at_any_depth(chain: Chain) -> None:
    [found] = leaves_below(chain.root)

    assert found.endswith(b"/next/last")
    assert found.count(b"/") == 1100


def test_owners_are_checked_at_any_depth(chain: Chain) -> None:
    sample = sample_ownership(
        chain.root, uid=os.geteuid(), gid=os.getegid(), sample_size=10_000
    )

    assert sample.mismatches == ()
    assert sample.checked == chain.entries


@needs_root
def test_a_wrong_owner_deeper_than_any_path_is_seen(chain: Chain) -> None:
    os.chown("last", 20001, 20000, dir_fd=chain.end_fd)

    sample = sample_ownership(chain.root, uid=0, gid=0, sample_size=10_000)

    [mismatch] = sample.mismatches
    assert mismatch.endswith("/next/last belongs to 20001:20000")


@pytest.mark.integration
def test_the_other_walks_end_as_ever(chain: Chain) -> None:
    assert newest_modification(chain.root).newest_at is not None
    assert sample_root_paths(chain.root) == []
    remarks_on_tree(chain.root)


@needs_root
@pytest.mark.parametrize("mode", [0o000, 0o400])
def test_what_its_owner_may_not_enter_is_one_thing_that_nobody_knows(
    chain: Chain, mode: int
) -> None:
    """Not to be read, or to be read and not gone through: what lies beside is found."""
    closed = chain.root / "side"
    (closed / "inner").mkdir()
    (closed / "inner" / "file").touch()
    (chain.root / "file").touch()
    closed.chmod(mode)
    script = (
        "import os, sys; from pathlib import Path;"
        "from provisioner.gateways.hosts.untracked import leaves_below;"
        "os.setgid(20000); os.setuid(20001);"
        "found = leaves_below(Path(sys.argv[1]));"
        "print(*(os.fsdecode(path) for path in found if b'next' not in path))"
    )
    for above in chain.root.parents:
        if not above.stat().st_mode & stat.S_IXOTH:
            above.chmod(stat.S_IMODE(above.stat().st_mode) | stat.S_IXOTH)
    os.chown(closed, 20001, 20000)

    said = subprocess.run(
        [sys.executable, "-c", script, str(chain.root)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert set(said.split()) == {"file", "side/inner" if mode else "side"}


@needs_root
def test_a_chain_of_1200_directories_goes_through_every_walk(
    tmp_path: Path, walker: Walker
) -> None:
    with deep_chain(tmp_path / "chain", depth=1200, name="d" * 20) as chain:
        report = change_ownership(chain.root, uid=OWNER, gid=GROUP, walker=walker)
        assert (report.failed_count, report.done) == (0, chain.entries)
        sample = sample_ownership(
            chain.root, uid=OWNER, gid=GROUP, sample_size=chain.entries
        )
        assert (sample.checked, sample.mismatches) == (chain.entries, ())
        assert remarks_on_tree(chain.root) == []
        assert len(list(leaves_below(chain.root))) == 1
        assert newest_modification(chain.root, most_seconds=0.2).newest_at is not None
        assert sample_root_paths(chain.root) == []
        assert remove_contents(chain.root, walker=walker).failed_count == 0
        assert os.listdir(chain.root) == []
