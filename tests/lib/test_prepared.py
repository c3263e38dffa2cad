"""Queries that are put together once answer as if they were put together anew."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.models import Count
from django.test.utils import CaptureQueriesContext

from provisioner.catalog.models import Template
from provisioner.lib.prepared import Prepared, among
from tests.support.factories import TemplateFactory

pytestmark = pytest.mark.django_db


def test_it_answers_for_each_id() -> None:
    one, other = TemplateFactory.create(), TemplateFactory.create()
    templates = Prepared(
        lambda pk: Template.objects.filter(pk=pk).select_related("site").order_by()
    )

    with CaptureQueriesContext(connection) as queries:
        found = [templates.first(each.pk) for each in (one, other, one)]
        sites = [each.site for each in found if each is not None]

    assert found == [one, other, one]
    assert sites == [one.site, other.site, one.site]
    assert len(queries) == 3
    assert templates.first(0) is None


def test_each_answer_is_read_anew() -> None:
    template = TemplateFactory.create()
    templates = Prepared(lambda pk: Template.objects.filter(pk=pk).order_by())
    [before] = templates.rows(template.pk)
    Template.objects.filter(pk=template.pk).update(name="renamed")

    [after] = templates.rows(template.pk)

    assert after.name == "renamed"
    assert before.name == template.name
    assert after is not before


def test_it_answers_with_values_as_well() -> None:
    template = TemplateFactory.create()
    counted = Prepared(
        lambda pk: (
            Template.objects.filter(site=pk)
            .order_by()
            .values_list("site")
            .annotate(number=Count("pk"))
        )
    )

    assert counted.rows(template.site_id) == [(template.site_id, 1)]


def test_it_answers_for_several_values() -> None:
    one, other = TemplateFactory.create(), TemplateFactory.create()
    named = Prepared(
        lambda site, name: Template.objects.filter(site=site).exclude(name=name),
        values=2,
    )

    assert named.rows(one.site_id, "none") == [one]
    assert named.rows(one.site_id, one.name) == []
    assert named.rows(other.site_id, one.name) == [other]


def test_a_column_is_compared_with_any_number_of_values() -> None:
    ids = sorted(TemplateFactory.create().pk for _ in range(3))
    templates = Prepared(
        lambda pks: Template.objects.filter(among("pk", pks)).order_by("pk")
    )

    for some in ([], ids[:1], ids, ids[1:]):
        assert [each.pk for each in templates.rows(some)] == some
