"""Many people, each a process with the official client, submit to one lab at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lab_perforce import lab_server, workspace

pytestmark = pytest.mark.timeout(300, method="thread")

OWN_CHANGES = 3


@pytest.mark.parametrize(
    "people", [10, pytest.param(50, marks=pytest.mark.integration)]
)
def test_no_submit_of_many_people_is_lost(tmp_path: Path, people: int) -> None:
    with lab_server(tmp_path) as server:
        ws = workspace(server, tmp_path, name="main", depot="//depot/main")
        ws.add({"counter": "0\n"})
        roots = [tmp_path / f"person-{number}" for number in range(people)]
        for root in roots:
            root.mkdir()
        arguments = [
            [
                *(f"127.0.0.1:{server.port}", server.password, root.name),
                *(str(root), ws.depot, str(OWN_CHANGES)),
            ]
            for root in roots
        ]
        done = subprocess.run(
            [sys.executable, "-m", "tests.contract.perforce_submitter"],
            cwd=Path(__file__).parents[2],
            input=json.dumps(arguments),
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr
        tries = done.stdout.split()
        assert len(tries) == people
        assert all(int(each) >= 1 for each in tries)

        ws.p4.run("sync")
        assert ws.tree()["counter"] == f"{people}\n".encode()
        for root in roots:
            assert ws.tree()[f"{root.name}.txt"] == f"{OWN_CHANGES - 1}\n".encode()
        submitted = ws.p4.run("changes", "-s", "submitted", f"{ws.depot}/...")
        numbers = [int(change["change"]) for change in submitted]
        assert len(set(numbers)) == 1 + people * (OWN_CHANGES + 1)
        assert numbers == sorted(numbers, reverse=True)
        (log,) = ws.p4.run_filelog(f"{ws.depot}/counter")
        assert [r.rev for r in log.revisions] == list(range(people + 1, 0, -1))
        assert ws.p4.run("opened", "-a") == []
        assert ws.p4.run("changes", "-s", "pending") == []
