"""A tree has any depth; a path has not. What looks at trees does not end with that."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest

from provisioner.gateways.hosts.lint import lint_tree
from provisioner.gateways.hosts.recency import newest_modification
from provisioner.gateways.hosts.root_paths import sample_root_paths
from provisioner.gateways.hosts.sampling import sample_ownership
from provisioner.gateways.hosts.untracked import leaves_below
from tests.unit.gateways.hosts.trees import Chain, needs_root


def test_untracked_files_are_found_at_any_depth(chain: Chain) -> None:
    [found] = leaves_below(chain.root)

    assert found.endswith(b"/next/last")
    assert found.count(b"/") == 1100


def test_owners_are_looked_at_as_deep_as_paths_go(chain: Chain) -> None:
    sample = sample_ownership(
        chain.root, uid=os.geteuid(), gid=os.getegid(), sample_size=10_000
    )

    assert sample.mismatches == ()
    assert sample.checked > 1000


def test_the_other_looks_end_as_ever(chain: Chain) -> None:
    assert newest_modification(chain.root).newest_at is not None
    assert sample_root_paths(chain.root) == []
    lint_tree(chain.root)


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
