"""A demo whose processes end by themselves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from provisioner.demo import seed
from provisioner.demo.processes import Child, ProcessFailed
from provisioner.demo.run import Demo, DemoFailed, DemoOptions
from provisioner.sites.models import Site
from tests.support.factories import SiteFactory


@pytest.mark.parametrize("code", [0, 1])
def test_a_demo_fails_when_a_worker_ends_that_nobody_told_to(
    code: int, tmp_path: Path
) -> None:
    ends = [sys.executable, "-c", f"print('the last word'); raise SystemExit({code})"]
    with Demo(DemoOptions(), say=print) as demo:
        demo.children.append(Child("worker", ends, log_dir=tmp_path))
        demo.children[0].process.wait()

        with pytest.raises(ProcessFailed, match=r"worker ended .* nobody told it to"):
            demo.serve()


def test_a_demo_with_one_site_gets_no_second_one_later(db: None) -> None:
    SiteFactory.create()
    with (
        Demo(DemoOptions(has_two_sites=True), say=print) as demo,
        pytest.raises(DemoFailed, match="make clean"),
    ):
        demo.choose_sites()


def test_two_sites_stay_when_they_are_no_longer_requested(db: None) -> None:
    seed.ensure_people()
    perforce = {"port": "127.0.0.1:1666", "user": "cloneyard"}
    edge = {"port": "127.0.0.1:1667", "user": "cloneyard"}
    end = {"host": "127.0.0.1", "port": 8443, "user": "admin", "ca_file": ""}
    ontap = {**end, "svm": "svm_a", "aggregate": "aggr1", "mount_root": "/a"}
    peer = {**end, "svm": "svm_b", "aggregate": "aggr1", "mount_root": "/b"}
    home = seed.ensure_two_sites(
        lab={"ontap": ontap, "peer": peer, "perforce": perforce, "edge": edge}
    )
    demo = Demo(DemoOptions(), say=print)

    demo.choose_sites()

    assert demo.has_two_sites
    abroad = Site.objects.get(name="bangalore")
    assert (home.name, home.svm, abroad.svm) == ("munich", "svm_a", "svm_b")
    assert abroad.perforce_server.upstream == home.perforce_server
    assert abroad.perforce_server.server_id == "edge-blr"
