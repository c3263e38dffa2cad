"""Room in a template's volume: size, inodes, and what fails for want of them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import requests
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build, template_create
from provisioner.catalog.models import Template, TemplateCheck
from provisioner.catalog.steps import room
from provisioner.catalog.steps.run import TemplateRun
from provisioner.engine.models import Operation
from provisioner.gateways import registry
from provisioner.gateways.hosts.room import NO_SPACE, OVER_QUOTA, Lack
from provisioner.gateways.ontap.types import Volume, VolumeSettings, most_inodes
from provisioner.gateways.perforce.types import TreeSize
from provisioner.lib.refusals import InvalidRequest, StepRefused
from provisioner.sites.models import AggregateSpace
from provisioner.sites.queries import aggregate_for_new
from tests.support.factories import SnapshotFactory
from tests.support.lab import Lab
from tests.support.lab_builds import AS_ROOT, build
from tests.support.ontap_scene import LabControl
from tests.support.projects import Project

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_size_that_was_changed_reaches_the_volume_with_the_next_build(
    lab_template: Template,
) -> None:
    ontap = registry.ontap(lab_template.site)
    build(lab_template)
    lab_template.refresh_from_db()
    for size in (3 * 2**30, 2 * 2**30, 2 * 2**30):  # grown, shrunk, as it is
        Template.objects.filter(pk=lab_template.pk).update(volume_size_bytes=size)
        operation = build(lab_template)
        assert operation.state == Operation.State.SUCCEEDED, operation.status_message
        assert ontap.get_volume(lab_template.volume_uuid).size_bytes == size


def test_no_volume_becomes_smaller_than_what_is_in_it(lab_template: Template) -> None:
    ontap = registry.ontap(lab_template.site)
    build(lab_template)
    lab_template.refresh_from_db()
    (lab_template.path / "large").write_bytes(os.urandom(64 * 2**20))
    os.sync()  # usage is what its blocks take
    ends = time.monotonic() + 60
    while (ontap.get_volume(lab_template.volume_uuid).used_bytes or 0) < 2**26:
        assert time.monotonic() < ends
        time.sleep(0.1)
    before = ontap.get_volume(lab_template.volume_uuid).size_bytes
    Template.objects.filter(pk=lab_template.pk).update(volume_size_bytes=30 * 2**20)

    operation = build(lab_template)

    assert operation.status_code == "volume_smaller_than_its_content"
    assert "give the template more" in operation.status_message
    assert ontap.get_volume(lab_template.volume_uuid).size_bytes == before
    assert Template.objects.get(pk=lab_template.pk).state == Template.State.FAILED


def test_what_ontap_had_to_grow_is_not_shrunk(lab_template: Template) -> None:
    site = lab_template.site
    build(lab_template)
    lab_template.refresh_from_db()
    account, uuid = registry.ontap_account(site), lab_template.volume_uuid
    address = f"https://{account.host}:{account.port}/api/storage/volumes/{uuid}"
    with requests.Session() as session:
        session.trust_env, session.verify = False, account.ca_file
        session.auth = (account.user, account.password)
        answer = session.patch(
            address, json={"size": 5 * 2**30, "autosize": {"mode": "grow"}}
        )
        assert answer.status_code == 202
    ends = time.monotonic() + 60
    while not registry.ontap(site).get_volume(uuid).sizes_itself:
        assert time.monotonic() < ends
        time.sleep(0.1)

    operation = build(lab_template)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    lab_template.refresh_from_db()
    assert lab_template.actual_size_bytes == 5 * 2**30
    assert registry.ontap(site).get_volume(uuid).size_bytes == 5 * 2**30


def survey(template: Template, *, files: int) -> None:
    """Count the view."""
    TemplateCheck.objects.update_or_create(
        template=template, defaults={"files": files, "checked_at": timezone.now()}
    )


def test_a_volume_has_inodes_for_the_files_of_its_view(lab_template: Template) -> None:
    """One for each 32 KB is too few where files are small."""
    ontap = registry.ontap(lab_template.site)
    size = 64 * 2**20
    Template.objects.filter(pk=lab_template.pk).update(volume_size_bytes=size)
    survey(lab_template, files=4000)

    for wanted in (12_000, 12_000):
        operation = build(lab_template)

        assert operation.state == Operation.State.SUCCEEDED, operation.status_message
        lab_template.refresh_from_db()
        volume = ontap.get_volume(lab_template.volume_uuid)
        assert volume.max_inodes == wanted

    TemplateCheck.objects.update(files=8000)
    build(lab_template)
    volume = ontap.get_volume(lab_template.volume_uuid)
    assert volume.max_inodes == most_inodes(size) == 16_384


@pytest.mark.parametrize("is_first", [True, False])
def test_a_view_that_was_never_counted_has_inodes_for_its_files(
    is_first: bool, project: Project, make_template: Callable[..., Template]
) -> None:
    """The check counts in a queue of its own, which may be late, or fail."""
    project.submit_paths({f"{number}.txt": "x" for number in range(300)})
    template = make_template(project)
    Template.objects.filter(pk=template.pk).update(volume_size_bytes=20 * 2**20)
    if not is_first:  # its view is widened after the first build
        Template.objects.update(view=project.view.replace("/...", "/7*.txt"))
        TemplateCheck.objects.all().delete()
        assert build(template).state == Operation.State.SUCCEEDED
        Template.objects.update(view=project.view)
    TemplateCheck.objects.all().delete()

    operation = build(template)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    template.refresh_from_db()
    volume = registry.ontap(template.site).get_volume(template.volume_uuid)
    assert volume.max_inodes == 900


def test_more_files_than_the_volume_can_have_are_refused_before_the_sync(
    lab_template: Template,
) -> None:
    Template.objects.filter(pk=lab_template.pk).update(volume_size_bytes=64 * 2**20)
    survey(lab_template, files=20_000)

    operation = build(lab_template)

    assert operation.status_code == "volume_too_small_for_its_files"
    assert "has 20,000 files" in operation.status_message
    assert "can have 16,384" in operation.status_message
    assert not operation.steps.get(name="sync").attempt


def test_inodes_whose_answer_was_lost_are_given_once(
    lab_template: Template, lab: Lab
) -> None:
    build(lab_template)
    lab_template.refresh_from_db()
    survey(lab_template, files=100_000)
    Template.objects.filter(pk=lab_template.pk).update(volume_size_bytes=3 * 2**30)
    lost = {"drop": True, "when": "after", "path": "/api/storage/volumes*"}
    lab.break_ontap({**lost, "method": "PATCH", "times": 2})

    operation = build(lab_template)

    lab.break_ontap()
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    volume = registry.ontap(lab_template.site).get_volume(lab_template.volume_uuid)
    assert (volume.size_bytes, volume.max_inodes) == (3 * 2**30, 300_000)


@pytest.mark.skipif(not AS_ROOT, reason="mounts need root")
@pytest.mark.parametrize(
    ("options", "fill", "code", "sentence"),
    [
        ("nr_inodes=30", "touch", "volume_out_of_inodes", "has no inodes left"),
        ("size=64k", "head -c 9999 /dev/zero >", "volume_full", "is full"),
    ],
)
def test_a_build_that_has_no_room_says_of_what(
    published_template: Template, options: str, fill: str, code: str, sentence: str
) -> None:
    template = published_template
    Template.objects.filter(pk=template.pk).update(
        build_command=f"for i in $(seq 99); do {fill} filling-$i || exit 3; done"
    )
    mount = ["mount", "-t", "tmpfs", "-o", f"{options},uid=20000", "none"]
    subprocess.run([*mount, str(template.path)], check=True)
    try:
        operation = build(template)
    finally:
        subprocess.run(["umount", str(template.path)], check=True)

    assert operation.status_code == code, operation.status_message
    assert f"The volume {template.volume_name} {sentence}" in operation.status_message
    assert "exit code 3" in operation.status_message


@pytest.mark.parametrize(
    ("lack", "code"),
    [
        (Lack.INODES, "volume_out_of_inodes"),
        (Lack.BYTES, "volume_full"),
        (None, "volume_over_quota"),
    ],
)
def test_a_test_that_has_no_room_marks_no_snapshot(
    lab_template: Template,
    lack: Lack | None,
    code: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(room, "lack_at", lambda root: lack)
    printed = OVER_QUOTA if lack is None else NO_SPACE
    Template.objects.filter(pk=lab_template.pk).update(
        test_command=f"echo {printed}; seq 99; exit 1"
    )

    operation = build(lab_template)

    assert operation.status_code == code, operation.status_message
    assert "The test ended with exit code 1." in operation.status_message
    assert not lab_template.snapshots.exists()


@pytest.mark.skipif(not AS_ROOT, reason="mounts need root")
@pytest.mark.parametrize(
    ("options", "code"),
    [("nr_inodes=4", "volume_out_of_inodes"), ("size=4k", "volume_full")],
)
def test_a_sync_that_has_no_room_says_of_what(
    lab_template: Template, options: str, code: str
) -> None:
    Template.objects.filter(pk=lab_template.pk).update(build_command="false")
    assert build(lab_template).status_code == "build_failed"
    mount = ["mount", "-t", "tmpfs", "-o", f"{options},uid=20000", "none"]
    subprocess.run([*mount, str(lab_template.path)], check=True)
    try:
        operation = build(lab_template)
    finally:
        subprocess.run(["umount", str(lab_template.path)], check=True)

    assert operation.status_code == code, operation.status_message
    assert "Give the template a larger volume" in operation.status_message or (
        "The next build gives it more" in operation.status_message
    )


@pytest.mark.parametrize(
    ("is_clean", "aggregate_bytes", "where"),
    [
        (False, None, "100 MiB"),
        (True, None, "100 MiB"),
        (False, 1 << 10, "aggregate aggr1 has room for 0 B"),
    ],
)
def test_a_build_that_there_is_no_room_for_does_not_begin(
    is_clean: bool, aggregate_bytes: int | None, where: str, built_template: Template
) -> None:
    template = built_template
    needed = 1 << 20 if aggregate_bytes else 1 << 40
    first = template.snapshots.get()
    assert first.is_clean
    assert first.grew_bytes is not None
    control = LabControl(account=registry.ontap_account(template.site))
    before = control.settings()
    # What a build of the other kind added says nothing.
    template.snapshots.update(grew_bytes=1 << 50, is_clean=not is_clean)
    operation = build(template, is_clean=is_clean)
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    template.snapshots.update(grew_bytes=needed, is_clean=is_clean)
    if aggregate_bytes:
        control.set_settings(aggregate_bytes={"aggr1": aggregate_bytes})

    try:
        operation = build(template, is_clean=is_clean)
    finally:
        control.set_settings(**before)

    assert operation.status_code == "no_room_to_build", operation.status_message
    assert f"needs about {'1.2 MiB' if aggregate_bytes else '1.2 TiB'}" in (
        operation.status_message
    )
    assert where in operation.status_message
    assert not operation.steps.get(name="sync").attempt


def test_a_volume_that_ontap_grows_has_room_up_to_its_maximum(
    built_template: Template,
) -> None:
    template, most = built_template, 200 << 20
    ontap = registry.ontap(template.site)
    grows = VolumeSettings(autosize_mode="grow", autosize_max_bytes=most)
    ontap.set_volume_settings(template.volume_uuid, grows)

    template.snapshots.update(grew_bytes=100 << 20)
    operation = build(template)
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message

    template.snapshots.update(grew_bytes=most)
    operation = build(template)
    assert operation.status_code == "no_room_to_build", operation.status_message
    assert "free of 200 MiB, to which ONTAP grows it" in operation.status_message


def test_what_the_first_build_added_says_nothing_about_later_ones(
    built_template: Template,
) -> None:
    """It synced the whole view, which a clean build keeps."""
    template = built_template
    template.snapshots.update(grew_bytes=1 << 50)

    for is_clean in (True, False):
        operation = build(template, is_clean=is_clean)
        assert operation.state == Operation.State.SUCCEEDED, operation.status_message


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("grew", "needed", "what"),
    [
        ((7, 1, 900, 2), "2.4 GiB", "(2 GiB, the most but one that the last 3 such"),
        ((7, 1, 900), "1.1 TiB", "(900 GiB, the most that the last 2 such builds"),
        ((7, 5), "6 GiB", "(5 GiB, the most that the last such build added, and"),
    ],
)
def test_one_unusual_build_does_not_say_what_the_next_one_needs(
    template: Template, grew: tuple[int, ...], needed: str, what: str
) -> None:
    """The first build is left out: it fetched the whole view."""
    gib = 1 << 30
    for size in grew:
        SnapshotFactory.create(template=template, grew_bytes=size * gib, is_clean=True)
    operation = template_build(by=template.owner, template=template)
    run = TemplateRun(operation.steps.get(name="volume"))
    volume = Volume(
        uuid="1",
        name=template.volume_name,
        state="online",
        comment="",
        size_bytes=100 * gib,
        junction_path="",
        export_policy="",
        snapshot_policy="none",
        clone_parent=None,
        uid=None,
        gid=None,
        root_mode="",
        guarantee="none",
        snapshot_reserve_percent=0,
        used_bytes=100 * gib,
        aggregate="aggr1",
        created_at=None,
    )

    with pytest.raises(StepRefused) as refused:
        room.require_room_to_build(run, volume, counted=None)

    assert f"needs about {needed} {what}" in str(refused.value)


def test_what_a_failed_first_build_left_is_not_needed_again(
    lab_template: Template,
) -> None:
    gib = 1 << 30
    Template.objects.filter(pk=lab_template.pk).update(build_command="false")
    assert build(lab_template).status_code == "build_failed"
    operation = build(lab_template)
    assert operation.status_code == "build_failed"
    lab_template.refresh_from_db()
    seen = registry.ontap(lab_template.site).get_volume(lab_template.volume_uuid)
    volume = replace(seen, size_bytes=100 * gib, used_bytes=80 * gib)
    run = TemplateRun(operation.steps.get(name="volume"))

    room.require_room_to_build(run, volume, counted=TreeSize(files=1, bytes=80 * gib))

    with pytest.raises(StepRefused, match="about 24 GiB"):
        room.require_room_to_build(
            run, volume, counted=TreeSize(files=1, bytes=100 * gib)
        )


def test_a_thick_volume_needs_no_room_in_its_aggregate(
    built_template: Template,
) -> None:
    template = built_template
    ontap = registry.ontap(template.site)
    thick = VolumeSettings(guarantee="volume")
    ontap.set_volume_settings(template.volume_uuid, thick)
    build(template)
    template.snapshots.update(grew_bytes=1 << 20)
    control = LabControl(account=registry.ontap_account(template.site))
    before = control.settings()
    control.set_settings(aggregate_bytes={"aggr1": 1 << 10})

    try:
        operation = build(template)
    finally:
        control.set_settings(**before)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message


@pytest.mark.parametrize("is_by_hand", [True, False])
def test_a_new_template_goes_where_it_is_told_or_where_there_is_room(
    is_by_hand: bool, lab_template: Template, admin: User
) -> None:
    site = lab_template.site
    for name, node_volumes, available in (
        ("aggr1", 10, 50),
        ("aggr2", 8, 95),
        ("aggr3", 9, 98),
        ("aggr4", 99, 100),
    ):
        AggregateSpace.objects.create(
            site=site,
            name=name,
            node_volumes=node_volumes,
            size_bytes=100 << 30,
            available_bytes=available << 30,
            measured_at=timezone.now(),
        )
    site.volumes_per_node = 99
    assert aggregate_for_new(site) == "aggr1"
    site.spreads_templates = not is_by_hand
    site.save()
    create = partial(template_create, by=admin, site=site, view=lab_template.view)
    with pytest.raises(InvalidRequest, match="aggr1, aggr2, aggr3, aggr4"):
        create(name="nowhere", aggregate="aggr9")
    name = f"{lab_template.name}x"
    template = create(name=name, aggregate="aggr2" if is_by_hand else "")

    operation = build(template)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    template.refresh_from_db()
    seen = registry.ontap(site).get_volume(template.volume_uuid)
    assert (template.aggregate, seen.aggregate) == ("aggr2", "aggr2")


def test_a_first_build_goes_elsewhere_if_its_aggregate_turned_full(
    lab_template: Template, admin: User
) -> None:
    """What was chosen with the request is asked of ONTAP again."""
    site = lab_template.site
    site.spreads_templates = True
    site.free_percent = 0
    site.save()
    for name, available in (("aggr1", 99), ("aggr2", 50)):
        AggregateSpace.objects.create(
            site=site,
            name=name,
            size_bytes=100 << 30,
            available_bytes=available << 30,
            measured_at=timezone.now(),
        )
    control = LabControl(account=registry.ontap_account(site))
    before = control.settings()
    try:
        # The first one is as large as what it has.
        control.set_settings(aggregate_bytes={"aggr1": 1 << 30})
        there = registry.ontap(site).list_aggregates()
        [taken] = [a.size_bytes - a.available_bytes for a in there if a.name == "aggr1"]
        control.set_settings(aggregate_bytes={"aggr1": taken})
        operation = build(lab_template)
    finally:
        control.set_settings(**before)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    lab_template.refresh_from_db()
    assert lab_template.aggregate == "aggr2"
    said = lab_template.events.get(kind="template_placed").message
    assert "goes to the aggregate aggr2, which has room for" in said
    assert "aggr1, chosen when the build was requested, has room for 0 B" in said

    # Where no aggregate has room, no volume is made.
    other = template_create(
        by=admin, site=site, name=f"{lab_template.name}y", view=lab_template.view
    )
    requested = template_build(by=admin, template=other)
    run = TemplateRun(requested.steps.get(name="volume"))
    with pytest.raises(StepRefused, match="the aggregate aggr1 has room for"):
        room.aggregate_of_new(run, counted=TreeSize(files=1, bytes=1 << 60))
