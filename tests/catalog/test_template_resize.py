"""A new size reaches a template's volume at once, by a real worker on the lab."""

from __future__ import annotations

import os

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.actions.templates import template_build, template_update
from provisioner.catalog.models import Template, VolumeOperation
from provisioner.catalog.refusals import TemplateBusy
from provisioner.engine.models import Operation
from provisioner.gateways import registry
from provisioner.gateways.ontap.polling import wait_until
from provisioner.gateways.ontap.types import Volume
from provisioner.lib.refusals import InvalidRequest
from tests.support.jobs import perform_again, settle
from tests.support.lab import Lab
from tests.support.lab_builds import build

pytestmark = pytest.mark.django_db(transaction=True)

GIB = 2**30


def volume_of(template: Template) -> Volume:
    return registry.ontap(template.site).get_volume(template.volume_uuid)


def give(template: Template, size_bytes: int) -> Operation:
    """Give the template another size; return the operation that applies it."""
    template_update(by=template.owner, template=template, volume_size_bytes=size_bytes)
    settle(template)
    operation = template.operations.filter(kind=VolumeOperation.CHANGE).first()
    assert operation is not None
    return operation


def test_a_new_size_reaches_the_volume_at_once(
    built_template: Template, lab: Lab
) -> None:
    template = built_template
    template_update(by=template.owner, template=template, snapshots_to_keep=4)
    changes = template.operations.filter(kind=VolumeOperation.CHANGE)
    assert not changes.exists()  # nothing of the volume was changed
    template_update(by=template.owner, template=template, volume_size_bytes=2 * GIB)
    for act in (
        lambda: template_build(by=template.owner, template=template),
        lambda: template_update(
            by=template.owner, template=template, volume_size_bytes=GIB
        ),
    ):
        with pytest.raises(TemplateBusy):
            act()
    settle(template)

    assert volume_of(template).size_bytes == 2 * GIB
    assert (template.actual_size_bytes, template.state) == (2 * GIB, "ready")
    perform_again(changes.get().steps.get())
    resized = {"template": template, "kind": "template_volume_resized"}
    event = Event.objects.get(**resized)
    assert event.message == "Its volume has 2 GiB now, and had 100 MiB."
    assert event.actor == template.owner

    lost = {"drop": True, "when": "after", "path": "/api/storage/volumes*"}
    lab.break_ontap({**lost, "method": "PATCH", "times": 1})
    operation = give(template, GIB)
    lab.break_ontap()

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    assert operation.steps.get().attempt == 2
    assert volume_of(template).size_bytes == GIB
    assert Event.objects.filter(**resized).count() == 2


def test_no_volume_shrinks_below_what_it_holds(
    built_template: Template, client: Client, lab: Lab
) -> None:
    template = built_template
    before = volume_of(template).size_bytes
    (template.path / "large").write_bytes(os.urandom(64 * 2**20))
    os.sync()  # usage is what its blocks take
    wait_until(
        lambda: (volume_of(template).used_bytes or 0) > 2**26 or None,
        limit_seconds=60,
    )

    operation = give(template, 30 * 2**20)  # it was not measured since

    assert operation.status_code == "volume_smaller_than_its_content"
    assert volume_of(template).size_bytes == before
    assert template.state == Template.State.READY
    assert Event.objects.filter(kind="template_volume_failed").exists()
    client.force_login(template.owner)
    page = client.get(reverse("template-detail", args=[template.pk]))
    assert "Not resized: The volume" in page.content.decode()

    fire = {"job_code": "917536", "job_message": "The disk shelf caught fire."}
    lab.break_ontap({"method": "PATCH", "path": "/api/storage/volumes/*", **fire})
    assert "caught fire" in give(template, GIB).status_message
    lab.break_ontap()
    assert build(template).state == Operation.State.SUCCEEDED
    assert volume_of(template).size_bytes == GIB


def test_a_volume_that_is_away_or_offline_is_not_resized(
    built_template: Template,
) -> None:
    template = built_template
    ontap = registry.ontap(template.site)
    ontap.set_volume_comment(template.volume_uuid, comment="somebody else's")

    assert give(template, GIB).status_code == "volume_is_not_ours"

    ontap.set_volume_comment(template.volume_uuid, comment=template.volume_comment)
    address = f"/storage/volumes/{template.volume_uuid}"
    ontap._write("PATCH", address, body={"state": "offline"})
    assert give(template, 2 * GIB).status_code == "volume_offline"
    ontap.bring_volume_online(template.volume_uuid)


def test_a_size_that_is_too_small_is_refused_at_its_field(
    template: Template, admin: User, api_as_admin: APIClient, api_as_alice: APIClient
) -> None:
    Template.objects.filter(pk=template.pk).update(used_bytes=3 * GIB)
    template.refresh_from_db()

    with pytest.raises(InvalidRequest, match="holds 3 GiB") as found:
        template_update(by=admin, template=template, volume_size_bytes=2 * GIB)

    assert found.value.field == "volume_size_bytes"
    # One that ONTAP grew beyond its size can have a narrower view.
    Template.objects.filter(pk=template.pk).update(volume_size_bytes=2 * GIB)
    template.refresh_from_db()
    narrow = "//depot/main/src/... //template/src/..."
    template_update(by=admin, template=template, view=narrow, volume_size_bytes=2 * GIB)
    Template.objects.filter(pk=template.pk).update(volume_size_bytes=4 * GIB)
    address = f"/api/v1/templates/{template.pk}"
    sent = {"volume_size_bytes": 2 * GIB, "title": "Never"}
    assert api_as_admin.patch(address, sent).status_code == 400
    for size, said in ((1, "smaller than 20 MiB"), (1 << 60, "larger than 300 TiB")):
        Template.objects.filter(pk=template.pk).update(used_bytes=None)
        template.refresh_from_db()
        with pytest.raises(InvalidRequest, match=said):
            template_update(by=admin, template=template, volume_size_bytes=size)
    sent["volume_size_bytes"] = 3 * GIB
    Template.objects.filter(pk=template.pk).update(
        owner=User.objects.get(username="alice")
    )
    assert api_as_alice.patch(address, sent).status_code == 403
    template.refresh_from_db()
    assert template.title == ""
    changed = api_as_admin.patch(address, sent).json()
    assert changed["volume_size_bytes"] == 3 * GIB
    assert not template.operations.exists()  # it has no volume yet
