"""Pages and API of deduplication plans, and of data reduction."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.test import Client
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Template
from provisioner.efficiency.actions import dedupe_plan_save
from provisioner.efficiency.models import DedupePlan, DedupeVolume, ReductionDay
from provisioner.efficiency.samples import figures_of
from provisioner.gateways.ontap.types import Efficiency, Reduction
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest

pytestmark = pytest.mark.django_db

TIB = 1 << 40


@pytest.mark.parametrize(
    ("field", "values", "sentence"),
    [
        ("cron", {"cron": "0 3 30 2 *"}, "The schedule 0 3 30 2 * never comes"),
        ("cron", {"cron": "at night"}, "The schedule needs five fields"),
        ("minutes", {"minutes": 0}, "A window of 0 minutes deduplicates nothing."),
        ("minutes", {"minutes": 20_000}, "A window lasts a week"),
        ("more_volumes", {"more_volumes": "a b-c"}, "“b-c” cannot be the name"),
        (
            "is_on",
            {"is_on": True, "covers_templates": False},
            "The plan covers no volume.",
        ),
    ],
)
def test_a_plan_that_could_never_run_is_refused(
    template: Template,
    admin: User,
    field: str,
    values: dict[str, object],
    sentence: str,
) -> None:
    with pytest.raises(InvalidRequest, match=sentence.replace("*", r"\*")) as refusal:
        dedupe_plan_save(by=admin, site=template.site, **values)
    assert refusal.value.field == field
    assert not DedupePlan.objects.exists()


def test_a_plan_is_changed_on_its_page_and_its_volumes_are_shown(
    template: Template, admin: User, signed_in: Callable[[User], Client]
) -> None:
    browser, path = signed_in(admin), f"/storage/deduplication/{template.site_id}/"
    asked = {"is_on": "on", "covers_templates": "on", "minutes": "0"}
    refused = browser.post(path, {**asked, "cron": "0 22 * * *"})
    assert refused.status_code == 409
    assert "A window of 0 minutes deduplicates nothing." in refused.text

    asked |= {"cron": " 0  22 * * * ", "minutes": "240", "more_volumes": "d1\nd2"}
    assert browser.post(path, asked).status_code == 302

    plan = DedupePlan.objects.get()
    assert (plan.cron, plan.minutes, plan.names) == ("0 22 * * *", 240, ["d1", "d2"])
    assert plan.waits_for_quiet is False
    assert Event.objects.filter(kind="dedupe_plan_changed").count() == 1
    for name, is_inline in (("flash", True), ("disk", False)):
        DedupeVolume.objects.create(
            site=template.site,
            ontap_uuid=name,
            name=name,
            kind=DedupeVolume.Kind.TEMPLATE,
            template=template,
            is_inline=is_inline,
            seen_at=clocks.database_now(),
        )
    shown = browser.get(path).text
    assert "Left alone: ONTAP deduplicates what is written, inline." in shown
    assert "Deduplicated by the plan." in shown
    assert "0 22 * * *" in browser.get("/storage/deduplication/").text


def test_windows_open_and_close() -> None:
    plan = DedupePlan(cron="0 22 * * *", minutes=120)
    night = dt.datetime(2026, 11, 26, 22, tzinfo=dt.UTC)
    for minutes, is_open in ((-1, False), (0, True), (119, True), (120, False)):
        at = plan.window_at(night + dt.timedelta(minutes=minutes))
        assert at == (night if is_open else None)


def test_figures_of_an_aggregate_are_those_of_harvest() -> None:
    """From the record of ONTAP's reference: savings of each kind are differences."""
    figures = figures_of(
        Efficiency(
            whole=Reduction(logical_bytes=900, saved_bytes=800),
            without_snapshots=Reduction(logical_bytes=400, saved_bytes=310),
            within=Reduction(logical_bytes=150, saved_bytes=60),
            deduplicated_bytes=45,
        )
    )
    assert figures == {
        "logical_bytes": 900,
        "physical_bytes": 100,
        "by_snapshots_bytes": 490,
        "by_clones_bytes": 250,
        "by_deduplication_bytes": 45,
        "by_compression_bytes": 15,
        "without_snapshots_ratio": 4.44,
        "within_ratio": 1.67,
    }


def test_data_reduction_is_a_page_a_csv_and_an_api(
    template: Template, admin: User, signed_in: Callable[[User], Client]
) -> None:
    today = clocks.database_now().date()
    for kind, row in (("site", None), ("template", template)):
        ReductionDay.objects.create(
            site=template.site,
            kind=kind,
            template=row,
            day=today,
            logical_bytes=9 * TIB,
            physical_bytes=TIB,
            provisioned_bytes=30 * TIB,
            full_percent=41.5,
            by_clones_bytes=3 * TIB,
        )
    browser = signed_in(admin)
    page = browser.get("/storage/reduction/").text
    assert "<strong>9.0:1</strong>" in page
    assert "30.0:1" in page
    assert f"Held and taken at {template.site}" in page
    lines = browser.get("/storage/reduction/?as=csv&kind=template").getvalue().decode()
    assert f"{template.name},{template.site.name},{9 * TIB},{TIB},9.0" in lines

    api = APIClient()
    api.force_authenticate(admin)
    [found] = api.get("/api/v1/storage/reduction?kind=site").json()["results"]
    assert (found["reduction"], found["overcommitment"]) == (9.0, 30.0)
    assert found["by_snapshots_bytes"] is None


def test_the_api_changes_a_plan(template: Template, admin: User) -> None:
    api = APIClient()
    api.force_authenticate(admin)
    [usual] = api.get("/api/v1/deduplication/plans").json()["results"]
    assert (usual["is_on"], usual["site"]) == (False, template.site.name)
    path = f"/api/v1/deduplication/plans/{template.site_id}"
    refused = api.patch(path, {"cron": "0 3 30 2 *"}, format="json")
    assert (refused.status_code, refused.json()["fields"].keys()) == (400, {"cron"})
    changed = api.patch(path, {"is_on": True, "minutes": 60}, format="json")
    assert (changed.status_code, changed.json()["minutes"]) == (200, 60)
    assert api.get("/api/v1/deduplication/runs").json()["results"] == []
