"""Sizes, inodes and quotas hold: the product on a lab whose kernel counts."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator

import pytest
from django.test import Client

from provisioner.catalog.models import Template
from provisioner.engine.models import Operation
from provisioner.gateways import registry
from provisioner.lab.ontap.dataplane.quotas import find_counters, subvolume_id
from provisioner.limits import sweeps
from provisioner.workspaces.models import Workspace
from tests.support.api_clients import api_of
from tests.support.factories import UserFactory
from tests.support.jobs import settle
from tests.support.lab import Lab, fill, running_lab
from tests.support.lab_builds import build
from tests.support.ontap_volumes import needs_image
from tests.support.requests import workspace_create

pytestmark = [
    needs_image,
    pytest.mark.integration,
    pytest.mark.django_db(transaction=True),
]

MB = 1 << 20
PATIENCE_SECONDS = 90
RULES = "/storage/quota/rules"
# It waits, so that inodes which are used up are noticed in a walk.
MANY_FILES = (
    "n=0; while :> many-$n; do n=$((n+1)); [ $((n % 50)) != 0 ] || sleep .05; done"
)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with running_lab("--btrfs", "2G") as lab:
        if find_counters(lab.root / "ontap" / "data") is None:
            pytest.skip("this kernel has no simple quotas")
        fill(lab)
        yield lab


def built_with(template: Template, command: str) -> Operation:
    Template.objects.filter(pk=template.pk).update(build_command=command)
    return build(template)


def test_a_full_volume_a_quota_and_a_lack_of_inodes_each_have_their_name(
    lab_template: Template,
) -> None:
    """The kernel says EDQUOT each time: ONTAP's own figures tell them apart."""
    template, ontap = lab_template, registry.ontap(lab_template.site)
    assert build(template).state == Operation.State.SUCCEEDED
    template.refresh_from_db()
    uuid, volume = template.volume_uuid, f"/storage/volumes/{template.volume_uuid}"
    rule = {
        "svm": {"name": template.site.svm},
        "volume": {"uuid": uuid},
        "type": "user",
        "users": [{"id": str(template.site.template_uid)}],
        "space": {"hard_limit": 10 * MB},
    }
    ontap._write("POST", RULES, body=rule)
    ontap._write("PATCH", volume, body={"quota": {"enabled": True}})

    by_quota = built_with(template, "head -c 30M /dev/zero > big")

    assert by_quota.status_code == "volume_over_quota", by_quota.status_message
    assert f"A quota of the volume {template.volume_name} is used up." in (
        by_quota.status_message
    )
    ontap._write("PATCH", volume, body={"quota": {"enabled": False}})

    # No single file may be larger than a volume can be.
    by_size = built_with(
        template, "for n in 1 2 3; do head -c 60M /dev/zero > $n; done"
    )

    assert by_size.status_code == "volume_full", by_size.status_message
    assert f"The volume {template.volume_name} is full." in by_size.status_message
    for name in ("1", "2", "3"):
        (template.path / name).unlink(missing_ok=True)
    ends = time.monotonic() + PATIENCE_SECONDS
    while (ontap.get_volume(uuid).used_bytes or 0) > 10 * MB:
        assert time.monotonic() < ends
        time.sleep(0.5)

    by_inodes = built_with(template, f"{MANY_FILES}; exit 3")

    assert by_inodes.status_code == "volume_out_of_inodes", by_inodes.status_message
    assert "has no inodes left" in by_inodes.status_message


def test_pages_say_what_btrfs_itself_counts(
    lab_template: Template, admin_client: Client, lab: Lab
) -> None:
    template, site = lab_template, lab_template.site
    built = built_with(template, "head -c 30M /dev/urandom > out; sync out")
    assert built.state == Operation.State.SUCCEEDED, built.status_message
    template.refresh_from_db()
    alice = UserFactory.create(username="alice", uid=20001, gid=20000)
    workspace = settle(workspace_create(by=alice, template=template))
    assert workspace.state == Workspace.State.READY, workspace.status_message
    (workspace.path / "mine").write_bytes(os.urandom(20 * MB))
    os.sync()
    data = lab.root / "ontap" / "data"
    clone = data / "volumes" / workspace.volume_uuid

    ends = time.monotonic() + PATIENCE_SECONDS
    while (workspace.unique_bytes or 0) < 20 * MB:
        assert time.monotonic() < ends
        sweeps.measure(site)
        workspace.refresh_from_db()
        time.sleep(1)
    template.refresh_from_db()

    total, exclusive = (int(each) for each in _last_line("filesystem", "du", clone))
    group = f"0/{subvolume_id(clone)} "
    [line] = [
        each for each in _btrfs("qgroup", "show", data).splitlines() if group in each
    ]
    assert workspace.used_bytes == pytest.approx(total, rel=0.01)
    assert workspace.unique_bytes == pytest.approx(exclusive, rel=0.01)
    assert workspace.unique_bytes == pytest.approx(int(line.split()[2]), rel=0.01)
    [of_template, _] = _last_line(
        "filesystem", "du", data / "volumes" / template.volume_uuid
    )
    assert template.used_bytes == pytest.approx(int(of_template), rel=0.01)
    assert template.fullness is not None
    shown = admin_client.get(f"/templates/{template.pk}/").text
    assert template.fullness.sentence in shown
    said = api_of(alice).get(f"/api/v1/workspaces/{workspace.pk}").json()
    assert said["unique_bytes"] == workspace.unique_bytes


def _btrfs(*words: object) -> str:
    command = ["btrfs", *map(str, words[:-1]), "--raw", str(words[-1])]
    if "du" in words:
        command.insert(3, "-s")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout


def _last_line(*words: object) -> list[str]:
    return _btrfs(*words).splitlines()[-1].split()[:2]
