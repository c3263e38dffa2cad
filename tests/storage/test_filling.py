"""People hear once that a volume fills up, and see it on the pages."""

from __future__ import annotations

import datetime as dt
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Template
from provisioner.copies.models import WorkspaceCopy
from provisioner.lib.fullness import Fullness, level_of
from provisioner.limits.sweeps import measure
from provisioner.mirrors.models import Mirror
from provisioner.notify.models import Notification, Webhook, WebhookDelivery
from provisioner.notify.sweeps.mails import send_due
from provisioner.storage.filling import note_filling
from provisioner.storage.models import FillingVolume
from provisioner.workspaces.models import Workspace
from tests.support.factories import MirrorFactory
from tests.support.jobs import POLL_EVERY_SECONDS, SETTLED_WITHIN_SECONDS
from tests.support.mail_server import BACKEND, Mailbox

GIB = 1 << 30


@pytest.mark.parametrize(
    ("percent", "last", "level"),
    [
        (84, 0, 0),
        (85, 0, 85),
        (94, 0, 85),
        (95, 0, 95),
        (95, 85, 95),
        (90, 95, 95),
        (89, 95, 85),
        (80, 85, 85),
        (79, 85, 0),
        (79, 95, 0),
        (120, 0, 95),
    ],
)
def test_a_level_rises_at_a_threshold_and_falls_below_it(
    percent: int, last: int, level: int
) -> None:
    assert level_of(percent, last=last) == level


def test_what_is_nearer_to_its_end_is_said() -> None:
    full = Fullness(
        used_bytes=90 * GIB,
        file_bytes=100 * GIB,
        size_bytes=100 * GIB,
        used_inodes=10,
        most_inodes=1000,
    )
    assert full.sentence == "90 % full: 90 GiB of 100 GiB."
    full = Fullness(
        used_bytes=GIB,
        file_bytes=80 * GIB,
        size_bytes=100 * GIB,
        used_inodes=960,
        most_inodes=1000,
    )
    assert (full.percent, full.is_urgent) == (96, True)
    assert full.sentence == "96 % full: 960 of the 1,000 files that its size allows."


@pytest.mark.django_db
def test_a_volume_with_a_reserve_is_full_where_its_files_end(
    fills: Callable[[int], None], workspace: Workspace, as_alice: Client
) -> None:
    """With a reserve of 20 %, 77 of 100 GiB are 96 % of what files can take."""
    Workspace.objects.update(snapshot_reserve_percent=20)
    fills(63)
    assert not FillingVolume.objects.exists()
    fills(77)
    assert FillingVolume.objects.get().level == 95
    said = "96 % full: 77 GiB of the 80 GiB for files."
    assert said in page_of(workspace, as_alice)
    assert Event.objects.get(kind="volume_filling").message.endswith(said)


@pytest.fixture
def fills(settings: Settings, workspace: Workspace) -> Callable[[int], None]:
    """Say how full a ready workspace's volume is, and let everybody be told of it."""
    settings.EMAIL_BACKEND = BACKEND
    Mailbox.empty()
    state = Workspace.State.READY
    Workspace.objects.update(state=state, ready_at=timezone.now())
    User.objects.filter(pk=workspace.owner_id).update(email="alice@example.com")
    minute = itertools.count()
    began = timezone.now()

    def fill(percent: int) -> None:
        Workspace.objects.update(
            actual_size_bytes=100 * GIB, used_bytes=percent * GIB, used_inodes=1
        )
        at = began + dt.timedelta(minutes=next(minute))
        note_filling(workspace.site, now=at)

    return fill


def told() -> list[str]:
    send_due(now=timezone.now() + dt.timedelta(days=1))
    return Mailbox.subjects()


@pytest.mark.django_db
def test_an_owner_is_told_once_for_each_threshold(
    fills: Callable[[int], None], workspace: Workspace, as_alice: Client
) -> None:
    hook = Webhook.objects.create(
        owner=workspace.owner, url="https://h.example/", events=["volume.fills"]
    )
    for percent in (84, 85, 91, 83, 86):
        fills(percent)
    subject = f"The volume of {workspace.name} fills up"
    assert told() == [subject]
    page = page_of(workspace, as_alice)
    assert "Its volume fills up" in page
    assert "86 % full: 86 GiB of 100 GiB." in page
    fills(97)
    fills(91)
    assert told() == [subject, subject]
    assert "97 % full: 97 GiB of 100 GiB." in str(Mailbox.delivered[1][1].body)
    assert WebhookDelivery.objects.filter(webhook=hook).count() == 2
    fills(50)
    assert not FillingVolume.objects.exists()
    assert "Its volume fills up" not in page_of(workspace, as_alice)
    fills(85)
    assert told() == [subject] * 3
    kinds = Event.objects.filter(workspace=workspace, kind__startswith="volume_")
    assert list(kinds.order_by("pk").values_list("kind", flat=True)) == [
        *("volume_filling", "volume_filling"),
        *("volume_has_room", "volume_filling"),
    ]


def page_of(workspace: Workspace, browser: Client) -> str:
    return browser.get(f"/workspaces/{workspace.pk}/").text


@pytest.mark.django_db
def test_owner_and_administrators_are_told_of_a_template(
    template: Template, admin: User, as_admin: Client, settings: Settings
) -> None:
    settings.EMAIL_BACKEND = BACKEND
    Mailbox.empty()
    User.objects.filter(pk__in=[admin.pk, template.owner_id]).update(
        email="a@b.example"
    )
    size = 100 * GIB
    Template.objects.update(
        actual_size_bytes=size, used_bytes=GIB, used_inodes=size // 4096
    )
    for _ in range(2):
        note_filling(template.site, now=timezone.now())
    people = Notification.objects.values_list("recipient", flat=True)
    assert set(people) == {admin.pk, template.owner_id}
    assert told() == [f"The volume of {template.name} fills up"]
    page = as_admin.get(f"/templates/{template.pk}/").text
    assert "Its volume is nearly full" in page
    assert "26,214,400 of the 26,214,400 files" in page
    assert template.volume_name in as_admin.get("/storage/volumes/").text
    csv = as_admin.get("/storage/volumes/?as=csv").getvalue().decode()
    assert f"{template.volume_name},template,{template.name},95," in csv
    assert "1 volume is at least 85 % full" in as_admin.get("/overview/").text


@pytest.mark.django_db
def test_people_are_told_of_a_mirror_that_ontap_cannot_grow_on(
    template: Template, admin: User, as_admin: Client, settings: Settings
) -> None:
    """ONTAP grows the destination of a mirror by itself, up to a maximum."""
    settings.EMAIL_BACKEND = BACKEND
    Mailbox.empty()
    User.objects.filter(pk__in=[admin.pk, template.owner_id]).update(
        email="a@b.example"
    )
    hook = Webhook.objects.create(
        owner=admin, url="https://h.example/", events=["volume.fills"]
    )
    mirror = MirrorFactory.create(template=template, site__name="far")

    def fill(percent: int, **fields: Any) -> None:
        size = 100 * GIB
        Mirror.objects.update(
            actual_size_bytes=size, used_bytes=percent * GIB, used_inodes=size, **fields
        )
        note_filling(mirror.site, now=timezone.now())

    fill(98, grows_to_bytes=200 * GIB)
    assert not FillingVolume.objects.exists()
    fill(98, grows_to_bytes=110 * GIB)
    fill(98)
    people = Notification.objects.values_list("recipient", flat=True)
    assert set(people) == {admin.pk, template.owner_id}
    assert told() == [f"The volume of {mirror.name} fills up"]
    remedy = f"enlarges {mirror.volume_path} at far, or raises its autosize maximum"
    assert remedy in str(Mailbox.delivered[0][1].body)
    [delivery] = WebhookDelivery.objects.filter(webhook=hook)
    assert f'"volume": "{mirror.volume_path}"' in delivery.body
    page = as_admin.get(f"/mirrors/{mirror.pk}/").text
    assert "89 % full: 98 GiB of 110 GiB." in page
    assert remedy in page
    assert mirror.volume_name in as_admin.get("/storage/volumes/?q=far").text
    fill(99, grows_to_bytes=None)
    assert FillingVolume.objects.get(mirror=mirror).level == 95
    fill(99, state=Mirror.State.FORMER, is_former_home=True)
    assert not FillingVolume.objects.exists()


@pytest.mark.django_db
def test_an_owner_is_told_of_a_copy_that_ontap_cannot_grow_on(
    fills: Callable[[int], None],
    workspace: Workspace,
    as_alice: Client,
    as_admin: Client,
) -> None:
    fills(1)
    mirror = MirrorFactory.create(template=workspace.template, site__name="far")
    copy = WorkspaceCopy.objects.create(
        workspace=workspace,
        site=mirror.site,
        name=f"{workspace.name} at far",
        state="ready",
        volume_uuid="v",
        relationship_uuid="r",
    )

    def fill(percent: int, **fields: Any) -> None:
        size = 100 * GIB
        WorkspaceCopy.objects.update(
            actual_size_bytes=size, used_bytes=percent * GIB, used_inodes=size, **fields
        )
        note_filling(mirror.site, now=timezone.now())

    fill(98, grows_to_bytes=200 * GIB)
    assert not FillingVolume.objects.exists()
    fill(98, grows_to_bytes=110 * GIB)
    fill(98)
    assert told() == [f"The volume of {copy.name} fills up"]
    remedy = f"enlarges {copy.volume_path} at far, or raises its autosize maximum"
    said = "The volume of its copy at far is 89 % full: 98 GiB of 110 GiB."
    mail = str(Mailbox.delivered[0][1].body)
    assert remedy in mail
    assert said in mail
    page = page_of(workspace, as_alice)
    assert "The volume of the copy at far is 89 % full" in page
    assert remedy in page
    assert copy.volume_name in as_admin.get("/storage/volumes/?q=at+far").text
    WorkspaceCopy.objects.update(is_released=True)
    note_filling(mirror.site, now=timezone.now())
    assert not FillingVolume.objects.exists()


@pytest.mark.django_db
def test_a_volume_that_ontap_grows_is_full_at_its_maximum(
    fills: Callable[[int], None], workspace: Workspace
) -> None:
    Workspace.objects.update(grows_to_bytes=200 * GIB)
    fills(98)
    assert not FillingVolume.objects.exists()
    Workspace.objects.update(grows_to_bytes=110 * GIB)
    fills(98)
    assert FillingVolume.objects.get().level == 85
    workspace.refresh_from_db()
    assert workspace.fullness is not None
    assert workspace.fullness.sentence == "89 % full: 98 GiB of 110 GiB."


@pytest.mark.django_db(transaction=True)
def test_measuring_on_the_lab_says_how_full_it_is(lab_workspace: Workspace) -> None:
    """The size and use that ONTAP reports are saved, and nothing more is asked."""
    before = used(lab_workspace)
    with Path(lab_workspace.path, "big").open("wb") as file:
        file.write(os.urandom(4 << 20))
    ends = time.monotonic() + SETTLED_WITHIN_SECONDS
    while used(lab_workspace) < before + (4 << 20):
        assert time.monotonic() < ends
        time.sleep(POLL_EVERY_SECONDS)
    assert lab_workspace.actual_size_bytes == lab_workspace.template.actual_size_bytes


def used(workspace: Workspace) -> int:
    measure(workspace.site)
    workspace.refresh_from_db()
    assert workspace.fullness is not None
    return workspace.fullness.used_bytes
