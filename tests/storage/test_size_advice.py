"""The size that a template's page proposes."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse
from django.utils import timezone

from provisioner.catalog.models import Template, TemplateCheck
from provisioner.storage.advice import size_advice
from provisioner.storage.models import SnapshotSize
from tests.support.factories import SnapshotFactory

GIB = 2**30


def bytes_of(template: Template) -> dict[str, int | None]:
    return {part.label: part.size_bytes for part in size_advice(template).parts}


def test_the_parts_are_what_was_measured_and_the_rest_is_not_known(
    template: Template, as_admin: Client, as_carol: Client
) -> None:
    address = reverse("template-detail", args=[template.pk])
    unknown = size_advice(template)
    assert {part.size_bytes for part in unknown.parts} == {None, 0}
    assert unknown.proposed_bytes is None
    assert as_admin.get(address).text.count("Not known yet") >= 3

    # The first one, after builds that failed: it added the whole view.
    SnapshotFactory.create(
        template=template, grew_bytes=80 * GIB, deleted_at=timezone.now()
    )
    for grew, held in ((GIB, 2 * GIB), (3 * GIB, None)):
        snapshot = SnapshotFactory.create(template=template, grew_bytes=grew)
        if held is not None:
            SnapshotSize.objects.create(
                snapshot=snapshot, size_bytes=held, measured_at=timezone.now()
            )
    SnapshotFactory.create(
        template=template, grew_bytes=90 * GIB, is_clean=True, deleted_at=timezone.now()
    )
    Template.objects.filter(pk=template.pk).update(
        used_bytes=32 * GIB, snapshots_to_keep=5
    )
    template.refresh_from_db()
    assert bytes_of(template)["View and build output"] == 30 * GIB

    TemplateCheck.objects.create(
        template=template, size_bytes=20 * GIB, checked_at=timezone.now()
    )
    template = Template.objects.get(pk=template.pk)
    assert bytes_of(template) == {
        "View": 20 * GIB,
        "Build output": 10 * GIB,
        "Kept snapshots": 2 * GIB,
        "Next builds": 4 * 2 * GIB,  # three until five are kept, and one
    }
    advice = size_advice(template)
    assert (advice.sum_bytes, advice.proposed_bytes) == (40 * GIB, 50 * GIB)
    shown = as_admin.get(address).text
    assert "1 of 2 measured" in shown
    assert 'id="size-advice"' in shown
    assert 'id="size-advice"' not in as_carol.get(address).text
