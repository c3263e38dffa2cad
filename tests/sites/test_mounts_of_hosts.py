"""What hosts have mounted is checked daily, on each that works for a site."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.gateways.hosts.mounts import Mount
from provisioner.sites.connections import rows
from provisioner.sites.connections.checklist import Check, Wrong
from provisioner.sites.connections.hosts import _Checks
from provisioner.sites.models import ConnectionTest, Site
from provisioner.sites.queries import CheckLine, connection_of
from provisioner.sites.sweeps import (
    PASSED_ON_AT_MOST,
    check_mount,
    sweep_mounts,
)
from tests.support.factories import SiteFactory
from tests.support.workers import start_worker

pytestmark = pytest.mark.django_db

WELL = Check(name="namespace", outcome="passed", sentence="It is there.")


def jobs() -> list[tuple[str, dict[str, object]]]:
    found = ProcrastinateJob.objects.filter(task_name="check_mount").order_by("pk")
    return list(found.values_list("queue_name", "args"))


@pytest.fixture
def site(admin: User) -> Site:
    site: Site = SiteFactory.create(name="munich", mount_root="/nonexistent/clones")
    rows.ask(site, by=admin, asked_at=timezone.now())
    rows.keep(site, "host", [WELL])
    return site


def checks(site: Site) -> list[CheckLine]:
    [report] = [
        report
        for report in connection_of(site, workers=[]).reports
        if report.place == ConnectionTest.Place.HOST
    ]
    return report.lines


def test_each_host_that_serves_a_site_is_asked(site: Site) -> None:
    start_worker("h1", site.host_queue)
    start_worker("h2", site.host_queue, "perforce")
    start_worker("h2", site.host_queue)
    start_worker("h3", "perforce")

    sweep_mounts(0)

    assert jobs() == [
        (site.host_queue, {"site_id": site.pk, "host": host, "passed_on": 0})
        for host in ("h1", "h2")
    ]


def test_a_check_is_passed_on_until_it_comes_to_its_host(site: Site) -> None:
    check_mount(site.pk, "elsewhere", 0)
    [(queue, arguments)] = jobs()
    assert (queue, arguments["passed_on"]) == (site.host_queue, 1)

    check_mount(site.pk, "elsewhere", PASSED_ON_AT_MOST)
    assert len(jobs()) == 1
    assert checks(site)[0].name == "namespace"


def test_what_is_wrong_on_a_host_stands_beside_what_is_known_until_it_is_right(
    site: Site, tmp_path: Path
) -> None:
    here = socket.gethostname()
    elsewhere = Check(name="mount_options", outcome="failed", sentence="Soft.")
    rows.keep_of_host(site, "h2", [elsewhere])

    check_mount(site.pk, here, 0)
    check_mount(site.pk, here, 0)

    assert [check.sentence for check in checks(site)] == [
        "It is there.",
        "On the host h2: Soft.",
        f"On the host {here}: /nonexistent/clones cannot be read on this host: No such "
        "file or directory.",
    ]
    site.mount_root = str(tmp_path)
    site.save()
    check_mount(site.pk, here, 0)
    assert [check.name for check in checks(site)] == ["namespace", "mount_options"]


@pytest.mark.parametrize("option", ["soft", "softerr", "nolock", "nocto"])
def test_options_that_hurt_are_found_in_what_is_mounted(option: str) -> None:
    """No NFS is mounted here: the rule is tried on what the kernel would list."""
    mount = Mount(
        mount_point=Path("/clones"),
        root="/",
        fs_type="nfs",
        source="svm:/",
        options=("rw", "vers=3", option),
    )
    looks = _Checks(SiteFactory.build(), nfs_addresses=[], mount=mount)
    with pytest.raises(Wrong, match=f"is mounted with {option}"):
        looks.mount_options()


EACH = {
    "mounting": Site.Mounting.EACH,
    "nfs_server": "127.0.0.1",
    "ontap_host": "ontap.example",
}
OF_THE_HOST = Mount(
    mount_point=Path("/"), root="/", fs_type="ext4", source="/dev/vda1", options=("rw",)
)
NAMESPACE = replace(OF_THE_HOST, fs_type="nfs4", source="127.0.0.1:/")


@pytest.mark.parametrize(
    ("holder", "addresses", "command", "sentence"),
    [
        (NAMESPACE, [], "mount", "but this site mounts each volume"),
        (OF_THE_HOST, [], "mount.of.nobody", "mount.of.nobody is not on this host"),
        (OF_THE_HOST, [], "mount -t nobody", "mount.nobody is not on this host"),
        (OF_THE_HOST, ["10.0.0.7"], "mount", "is not an address at which the SVM"),
        (OF_THE_HOST, ["127.0.0.1"], "mount", "nothing listens on port 2049"),
    ],
)
def test_what_keeps_a_host_from_mounting_each_volume_is_named(
    holder: Mount,
    addresses: list[str],
    command: str,
    sentence: str,
    tmp_path: Path,
    settings: Settings,
) -> None:
    settings.MOUNT_COMMAND = command.split()
    site = SiteFactory.build(**EACH, mount_root=str(tmp_path))

    checks = _Checks(site, nfs_addresses=addresses, mount=holder)
    _, found, *_ = checks.run("mount_root", "namespace")

    assert found.outcome == "failed"
    assert sentence in found.sentence
