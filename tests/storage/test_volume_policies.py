"""Settings of templates' volumes, applied in the lab's ONTAP."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.actions.templates import template_update
from provisioner.catalog.models import Template, VolumePolicy
from provisioner.gateways import registry
from provisioner.gateways.ontap.types import VolumeSettings
from provisioner.lib.refusals import NotAllowed
from provisioner.notify.sweeps.mails import send_due
from provisioner.sites.models import AggregateSpace, Site
from provisioner.storage.actions import volume_policy_save
from provisioner.storage.growing import grow_full_volumes
from provisioner.storage.models import Growth
from provisioner.storage.overviews import volume_policies_of
from provisioner.storage.sweeps import sweep_volume_policies
from provisioner.storage.tasks import keep_volume_policies_of
from provisioner.storage.volume_policies import keep_volume_policies
from provisioner.workspaces.models import Workspace
from tests.support.factories import UserFactory
from tests.support.jobs import run_jobs_once, settle
from tests.support.lab import Lab
from tests.support.lab_builds import build
from tests.support.mail_server import BACKEND, Mailbox
from tests.support.ontap_scene import LabControl
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db(transaction=True)

GIB = 2**30
DEFAULTS: dict[str, Any] = {
    "autosize_mode": "grow",
    "autosize_max_percent": 300,
    "snapshot_reserve_percent": 10,
    "guarantee": "none",
    "fractional_reserve": 100,
    "security_style": "mixed",
    "min_inodes": 9000,
}
AS_DEFAULT = VolumeSettings(
    autosize_mode="grow",
    autosize_max_bytes=300 * 2**20,
    snapshot_reserve_percent=10,
    guarantee="none",
    fractional_reserve=100,
    security_style="mixed",
    max_inodes=9000,
)


def settings_of(template: Template) -> VolumeSettings:
    return registry.ontap(template.site).get_volume_settings(template.volume_uuid)


def told(template: Template) -> list[str]:
    events = Event.objects.filter(template=template, kind="template_volume_settings")
    return list(events.order_by("pk").values_list("message", flat=True))


def test_a_volume_gets_its_settings_when_it_is_made_and_keeps_them(
    lab_template: Template,
) -> None:
    template, by = lab_template, lab_template.owner
    volume_policy_save(by=by, site=template.site, **DEFAULTS)
    build(template)
    template.refresh_from_db()

    assert not AS_DEFAULT.lacking_in(settings_of(template))
    assert told(template) == [
        "Set in ONTAP for its volume: autosize grow, autosize up to 300 MiB, "
        "snapshot reserve 10 %, fractional reserve 100 %, security style mixed, "
        "9,000 inodes."
    ]
    alice = UserFactory.create(username="alice", uid=20001, gid=20000)
    clone = settle(workspace_create(by=alice, template=template))
    seen = registry.ontap(template.site).get_volume_settings(clone.volume_uuid)
    assert (seen.security_style, seen.fractional_reserve) == ("mixed", 100)

    volume_policy_save(
        by=by, site=template.site, template=template, snapshot_reserve_percent=0
    )
    run_jobs_once()
    assert settings_of(template).snapshot_reserve_percent == 0
    assert not VolumePolicy.objects.filter(applied_at=None).exists()
    template_update(by=by, template=template, volume_size_bytes=GIB)
    settle(template)
    assert settings_of(template).autosize_max_bytes == 3 * GIB
    kept = told(template)
    keep_volume_policies(template.site)
    assert told(template) == kept

    # What somebody changes in ONTAP is left to the drift check.
    changed = VolumeSettings(autosize_mode="off", security_style="ntfs")
    ontap = registry.ontap(template.site)
    ontap.set_volume_settings(template.volume_uuid, changed)
    for is_due, style in ((False, "ntfs"), (True, "mixed")):
        if is_due:
            VolumePolicy.objects.filter(template=None).update(applied_at=None)
        sweep_volume_policies(timestamp=0)
        run_jobs_once()
        assert settings_of(template).security_style == style


def test_new_clones_have_headroom_for_their_purpose(
    published_template: Template, lab: Lab
) -> None:
    template = published_template
    by = UserFactory.create(username="alice", uid=20001, gid=20000, is_staff=True)
    volume_policy_save(by=by, site=template.site, build_headroom_percent=50)
    volume_policy_save(
        by=by, site=template.site, template=template, headroom_percent=20
    )
    ontap, size = registry.ontap(template.site), template.clone_size_bytes
    lost = {"method": "PATCH", "path": "/api/storage/volumes*", "drop": True}

    for purpose, percent in (("development", 20), ("build", 50)):
        lab.break_ontap({**lost, "when": "after", "times": 1})
        clone = settle(workspace_create(by=by, template=template, purpose=purpose))
        assert clone.state == Workspace.State.READY, clone.status_message
        volume = ontap.get_volume(clone.volume_uuid)
        assert volume.size_bytes == size * (100 + percent) // 100
        assert clone.operations.get().steps.get(name="clone").attempt == 2
    lab.break_ontap()

    assert ontap.get_volume(template.volume_uuid).size_bytes == size
    assert not told(template)


def test_a_full_clone_grows_as_far_as_its_policy_says(
    published_template: Template, settings: Settings
) -> None:
    settings.EMAIL_BACKEND = BACKEND
    Mailbox.empty()
    template, site = published_template, published_template.site
    by = UserFactory.create(
        username="alice", uid=20001, gid=20000, is_staff=True, email="a@b.example"
    )
    workspace = settle(workspace_create(by=by, template=template))
    size = template.clone_size_bytes

    def filled(size_bytes: int) -> int:
        """Return the size after it was measured as full."""
        Workspace.objects.filter(pk=workspace.pk).update(
            actual_size_bytes=size_bytes, used_bytes=size_bytes * 96 // 100
        )
        grow_full_volumes(site, now=timezone.now())
        grow_full_volumes(site, now=timezone.now())
        seen = registry.ontap(site).get_volume(workspace.volume_uuid).size_bytes
        workspace.refresh_from_db()
        return seen

    assert filled(size) == size  # off by default
    volume_policy_save(
        by=by, site=site, clone_grow_percent=40, clone_grow_max_percent=150
    )
    space = AggregateSpace.objects.create(
        site=site,
        name=site.aggregate,
        size_bytes=1 << 40,
        available_bytes=0,
        measured_at=timezone.now(),
    )
    assert filled(size) == size  # the aggregate has no room
    space.delete()
    assert filled(size) == size * 140 // 100 == workspace.actual_size_bytes
    assert filled(size * 140 // 100) == size * 150 // 100
    assert filled(size * 150 // 100) == size * 150 // 100
    said = workspace.events.filter(kind="volume_grown").order_by("pk")
    assert said.count() == 2
    first = said[0].message
    assert first == "Its volume was 96 % full. It grew from 100 MiB to 140 MiB."
    send_due(now=timezone.now() + dt.timedelta(days=1))
    assert Mailbox.subjects() == [f"The volume of {workspace.name} fills up"] * 2
    assert first in str(Mailbox.delivered[0][1].body)


def test_a_growth_whose_reply_was_lost_is_recorded_once(
    published_template: Template, lab: Lab
) -> None:
    """The next measurement says whether the volume grew."""
    template, site = published_template, published_template.site
    by = UserFactory.create(username="alice", uid=20001, gid=20000, is_staff=True)
    volume_policy_save(by=by, site=site, clone_grow_percent=40)
    workspace = settle(workspace_create(by=by, template=template))
    size = template.clone_size_bytes
    place = {"method": "PATCH", "path": "/api/storage/volumes*"}
    said = workspace.events.filter(kind="volume_grown")

    def measured_as_full() -> None:
        seen = registry.ontap(site).get_volume(workspace.volume_uuid).size_bytes
        used = size * 96 // 100
        Workspace.objects.filter(pk=workspace.pk).update(
            actual_size_bytes=seen, used_bytes=used
        )
        grow_full_volumes(site, now=timezone.now())

    lab.break_ontap({**place, "status": 403, "code": "6"})
    measured_as_full()
    lab.break_ontap({**place, "drop": True, "when": "after"})
    measured_as_full()
    lab.break_ontap()
    assert not said.exists()
    measured_as_full()
    measured_as_full()

    assert said.get().message.endswith("It grew from 100 MiB to 140 MiB.")
    assert not Growth.objects.exists()


def test_what_an_aggregate_has_left_bounds_all_that_grow(
    published_template: Template,
) -> None:
    template, site = published_template, published_template.site
    by = UserFactory.create(username="alice", uid=20001, gid=20000, is_staff=True)
    volume_policy_save(by=by, site=site, clone_grow_percent=50)
    size = template.clone_size_bytes
    first, second = (settle(workspace_create(by=by, template=template)) for _ in "12")
    Workspace.objects.update(actual_size_bytes=size, used_bytes=size)
    AggregateSpace.objects.create(
        site=site,
        name=site.aggregate,
        size_bytes=size,
        available_bytes=size,  # less what stays free: room for one of them
        measured_at=timezone.now(),
    )

    grow_full_volumes(site, now=timezone.now())

    first.refresh_from_db()
    second.refresh_from_db()
    assert first.actual_size_bytes == size * 3 // 2
    assert second.actual_size_bytes == size


def test_after_a_failure_and_a_lost_reply_the_next_attempt_goes_on(
    built_template: Template, lab: Lab
) -> None:
    template = built_template
    control = LabControl(account=registry.ontap_account(template.site))
    before = control.settings()
    control.set_settings(aggregate_bytes={"aggr1": 1 << 10})
    settings: dict[str, Any] = {"guarantee": "volume", "fractional_reserve": 0}
    by, site = template.owner, template.site
    volume_policy_save(by=by, site=site, **settings)
    volume_policy_save(by=by, site=site, template=template)  # as the site's
    keep_volume_policies_of(template.site_id)
    told_by = volume_policies_of([site])[0]
    assert told_by.policy is not None
    assert template.name in told_by.policy.status_message
    VolumePolicy.objects.filter(template=None).delete()
    volume_policy_save(by=by, site=site, template=template, **settings)
    keep_volume_policies_of(template.site_id)
    control.set_settings(**before)
    policy = VolumePolicy.objects.get()
    assert f"{template.name}: The aggregate has too little" in policy.status_message
    assert settings_of(template).guarantee == "none"

    for method, fault, sentence in (
        ("GET", {"status": 403, "code": "6"}, "is not permitted"),
        ("PATCH", {"drop": True, "when": "after"}, "closed the connection"),
    ):
        place = {"path": "/api/storage/volumes*", "method": method}
        lab.break_ontap({**place, **fault})
        keep_volume_policies_of(template.site_id)
        policy.refresh_from_db()
        assert sentence in policy.status_message
    lab.break_ontap()
    keep_volume_policies_of(template.site_id)

    policy.refresh_from_db()
    assert policy.status_message == ""
    seen = settings_of(template)
    assert (seen.guarantee, seen.fractional_reserve) == ("volume", 0)


def test_what_is_saved_while_a_job_applies_is_not_in_force_by_that_job(
    template: Template, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = template.site
    policy = volume_policy_save(by=admin, site=site, security_style="unix")

    class Ontap:
        def list_volume_settings(self, *, comment_prefix: str) -> dict[str, Any]:
            volume_policy_save(by=admin, site=site, security_style=styles.pop())
            return {}

    styles = ["unix", "ntfs"]
    monkeypatch.setattr(registry, "ontap", lambda site: Ontap())
    keep_volume_policies(site)
    policy.refresh_from_db()
    assert (policy.security_style, policy.applied_at) == ("ntfs", None)
    VolumePolicy.objects.update(security_style="unix", applied_at=timezone.now())
    styles = ["ntfs"]
    keep_volume_policies(site)
    policy.refresh_from_db()
    assert policy.applied_at is None


def test_pages_and_api_save_settings_for_administrators_alone(
    lab_site: Site,
    template: Template,
    as_admin: Client,
    as_carol: Client,
    carol: User,
    admin: User,
) -> None:
    page = f"/policies/volumes/{lab_site.pk}/"
    own = f"/policies/volumes/templates/{template.pk}/"
    for address in (page, own, "/policies/volumes/"):
        assert as_carol.get(address).status_code == 403
        assert "/login/" in Client().get(address)["Location"]
    wrong = {"autosize_max_percent": "100", "guarantee": "soft", "min_inodes": "many"}
    answer = as_admin.post(page, wrong)
    assert answer.status_code == 422
    assert "many" in answer.text
    assert not VolumePolicy.objects.exists()
    right = {"autosize_mode": "grow", "fractional_reserve": "0"}
    assert as_admin.post(page, right).status_code == 302
    policy = VolumePolicy.objects.get()
    assert policy.settings == {"autosize_mode": "grow", "fractional_reserve": 0}
    assert as_admin.post(own, {"min_inodes": "5000"}).status_code == 302
    shown = as_admin.get("/policies/volumes/").text
    assert "autosize: grow, fractional reserve 0 %" in shown
    assert "at least 5,000 inodes" in shown
    assert 'value="5000"' in as_admin.get(own).text

    api, url = APIClient(), "/api/v1/storage/volume-policies"
    body = {"site": template.site.name, "template": template.name, "guarantee": "none"}
    assert api.get(url).status_code == 401
    api.force_authenticate(carol)
    assert api.get(url).status_code == 403
    assert api.post(url, body, format="json").status_code == 403
    api.force_authenticate(admin)
    saved = api.post(url, body, format="json")
    assert saved.status_code == 202
    assert (saved.json()["guarantee"], saved.json()["min_inodes"]) == ("none", None)
    assert len(api.get(url).json()["results"]) == 2
    for unknown in ({"template": "never"}, {"fractional_reserve": 50}):
        assert api.post(url, {**body, **unknown}, format="json").status_code == 400
    assert Event.objects.filter(kind="volume_policy_changed").count() == 3
    with pytest.raises(NotAllowed):
        volume_policy_save(by=UserFactory.create(), site=lab_site)
