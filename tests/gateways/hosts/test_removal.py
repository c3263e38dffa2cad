"""Emptying a clone: everything below the root goes, nothing else does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from provisioner.gateways.errors import Refused
from provisioner.gateways.hosts.removal import remove_contents
from provisioner.gateways.hosts.trees.run import Walker, WalkReport
from tests.gateways.hosts.trees import Chain, bind_mounted, needs_root, plant


def test_removes_everything_but_the_root(tmp_path: Path, walker: Walker) -> None:
    entries = plant(tmp_path / "clone")
    (tmp_path / "clone/outer0/name\nwith \udcff").touch()
    seen: list[WalkReport] = []

    report = remove_contents(tmp_path / "clone", progress=seen.append, walker=walker)

    assert list((tmp_path / "clone").iterdir()) == []
    assert (report.done, report.entries, report.failed_count) == (entries,) * 2 + (0,)
    assert seen[-1].done == entries


def test_an_empty_root_is_done_at_once(tmp_path: Path, walker: Walker) -> None:
    (tmp_path / "clone").mkdir()
    report = remove_contents(tmp_path / "clone", walker=walker)
    assert (report.done, report.failed_count) == (0, 0)


def test_links_go_and_what_they_lead_to_stays(tmp_path: Path, walker: Walker) -> None:
    plant(tmp_path / "clone")
    plant(tmp_path / "outside")
    before = sorted((tmp_path / "outside").rglob("*"))
    (tmp_path / "clone/to_directory").symlink_to(tmp_path / "outside")
    (tmp_path / "clone/outer1/to_file").symlink_to("../../outside/outer0/inner0/file0")

    remove_contents(tmp_path / "clone", walker=walker)

    assert list((tmp_path / "clone").iterdir()) == []
    assert sorted((tmp_path / "outside").rglob("*")) == before


def test_refuses_a_link_as_root_and_the_hosts_root(
    tmp_path: Path, walker: Walker
) -> None:
    plant(tmp_path / "outside")
    (tmp_path / "link").symlink_to(tmp_path / "outside")
    for root in (tmp_path / "link", Path("/"), tmp_path / "absent"):
        with pytest.raises(Refused):
            remove_contents(root, walker=walker)
    assert (tmp_path / "outside/outer0").exists()


@needs_root
def test_a_mount_inside_is_kept_with_what_leads_to_it(
    tmp_path: Path, walker: Walker
) -> None:
    plant(tmp_path / "clone")
    plant(tmp_path / "outside")
    inside = tmp_path / "clone/outer1/inner1/mounted"
    inside.mkdir()
    with bind_mounted(tmp_path / "outside", inside):
        report = remove_contents(tmp_path / "clone", walker=walker)
        assert (tmp_path / "outside/outer0/inner0/file0").exists()
    assert report.skipped == ["outer1/inner1/mounted"]
    assert report.failed_count == 0
    assert os.listdir(tmp_path / "clone") == ["outer1"]
    assert os.listdir(tmp_path / "clone/outer1") == ["inner1"]
    assert remove_contents(tmp_path / "clone", walker=walker).done == 3


@needs_root
def test_what_cannot_be_removed_is_named_and_the_rest_goes(
    tmp_path: Path, walker: Walker
) -> None:
    entries = plant(tmp_path / "clone")
    stubborn = tmp_path / "clone/outer1/inner1/file1"
    if subprocess.run(["chattr", "+i", stubborn], capture_output=True).returncode:
        pytest.skip("no immutable files here")
    try:
        report = remove_contents(tmp_path / "clone", walker=walker)
    finally:
        subprocess.run(["chattr", "-i", stubborn], check=True)
    assert [failure.path for failure in report.failures] == ["outer1/inner1/file1"]
    assert report.failed_count == 1
    assert report.done == entries - 1 - 3
    assert stubborn.exists()


def test_a_chain_deeper_than_any_path_goes_too(chain: Chain, walker: Walker) -> None:
    report = remove_contents(chain.root, walker=walker)
    assert (report.done, report.failed_count) == (chain.entries - 1, 0)
    assert os.listdir(chain.root) == []
