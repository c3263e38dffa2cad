"""Pages and API of moves, for administrators, strangers and nobody."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.moves.models import Move, TemplatePlace
from provisioner.sites.models import AggregateSpace
from provisioner.workspaces.models import Workspace

pytestmark = pytest.mark.django_db

GIB = 1 << 30


@pytest.fixture
def measured(ready: Workspace) -> Template:
    """A template in aggr1, of which alice has a clone; aggr2 has room, aggr3 none."""
    template, now = ready.template, timezone.now()
    Template.objects.filter(pk=template.pk).update(
        volume_uuid="a-volume", aggregate="aggr1"
    )
    Workspace.objects.filter(pk=ready.pk).update(split_bytes=6 * GIB)
    TemplatePlace.objects.create(
        template=template,
        tiering_policy="auto",
        footprint_bytes=50 * GIB,
        measured_at=now,
    )
    for name, available in (("aggr1", 900), ("aggr2", 800), ("aggr3", 60)):
        AggregateSpace.objects.create(
            site=template.site,
            name=name,
            size_bytes=1000 * GIB,
            available_bytes=available * GIB,
            measured_at=now,
        )
    template.refresh_from_db()
    return template


def test_a_preview_says_what_is_shared_and_where_there_is_room(
    measured: Template, as_admin: Client, as_carol: Client
) -> None:
    page = f"/templates/{measured.pk}/move/"
    seen = as_admin.get(page).text
    assert "50 GiB there, with its snapshots." in seen
    assert "1 workspace shares up to 6 GiB with it." in seen
    assert "auto: data that is rarely read goes to the object store." in seen
    assert (seen.count("Too full"), seen.count("It fits")) == (1, 1)
    Workspace.objects.update(split_bytes=60 * GIB)
    assert "shares up to 50 GiB with it. It stays where" in as_admin.get(page).text
    Workspace.objects.update(aggregate="aggr3")
    assert "no workspace shares blocks with it" in as_admin.get(page).text
    link = "Move to another aggregate…"
    assert link in as_admin.get(f"/templates/{measured.pk}/").text
    assert link not in as_carol.get(f"/templates/{measured.pk}/").text
    assert as_carol.get(page).status_code == 403
    assert "/login/" in Client().get(page)["Location"]


def test_a_move_is_requested_followed_and_stopped(
    measured: Template, as_admin: Client
) -> None:
    page = f"/templates/{measured.pk}/move/"
    refused = as_admin.post(page, {"aggregate": "aggr3"})
    assert refused.status_code == 409
    assert "but the aggregate aggr3 has room for 10 GiB" in refused.text
    assert as_admin.post(page, {"aggregate": "aggr1"}).status_code == 422
    assert as_admin.post(page, {"aggregate": "aggr2"}).status_code == 302
    assert "to aggr2" in as_admin.get(page).text
    part = as_admin.get(page, headers={"HX-Request": "true"}).text
    assert part.strip().startswith('<div id="move" hx-get=')
    assert "Build the newest change" in as_admin.get(f"/templates/{measured.pk}/").text
    assert as_admin.post(f"{page}pause/").status_code == 302
    assert measured.operations.latest("pk").kind == "template_move_pause"
    assert "not being moved" not in as_admin.get(page).text
    assert as_admin.post(f"{page}stop/").status_code == 302
    kinds = measured.operations.values_list("kind", "state").order_by("-pk")[:3]
    assert list(kinds) == [
        ("template_move_stop", "running"),
        ("template_move_pause", "canceled"),
        ("template_move", "canceled"),
    ]


def test_a_paused_move_is_resumed_or_stopped_from_its_page(
    measured: Template, as_admin: Client, admin: User
) -> None:
    page = f"/templates/{measured.pk}/move/"
    as_admin.post(page, {"aggregate": "aggr2"})
    Move.objects.update(paused_at=timezone.now())
    measured.operations.update(state="canceled", ended_at=timezone.now())
    seen = as_admin.get(page).text
    assert "The move to aggr2 was paused" in seen
    assert ("Resume</button>" in seen, "Move</button>" in seen) == (True, False)
    api = APIClient()
    api.force_authenticate(admin)
    assert api.get(f"/api/v1/templates/{measured.pk}/move").json()["paused_at"]
    assert as_admin.post(f"{page}resume/").status_code == 302
    assert measured.operations.latest("pk").kind == "template_move"


def test_a_move_that_was_done_before_it_was_paused_says_so(
    measured: Template, as_admin: Client
) -> None:
    page = f"/templates/{measured.pk}/move/"
    as_admin.post(page, {"aggregate": "aggr2"})
    measured.operations.update(
        state="canceled", ended_at=timezone.now(), status_message="admin paused it."
    )
    said = "admin paused it. The volume had reached aggr2 by then."
    assert said not in as_admin.get(page).text
    Template.objects.filter(pk=measured.pk).update(aggregate="aggr2")
    assert said in as_admin.get(page).text


def test_the_api_previews_moves_and_stops(
    measured: Template, admin: User, carol: User
) -> None:
    api, url = APIClient(), f"/api/v1/templates/{measured.pk}/move"
    assert api.get(url).status_code == 401
    api.force_authenticate(carol)
    body = {"aggregate": "aggr2"}
    assert api.get(url).status_code == 403
    assert api.post(url, body, format="json").status_code == 403
    for verb in ("pause", "resume", "stop"):
        assert api.post(f"{url}/{verb}").status_code == 403
    api.force_authenticate(admin)
    seen = api.get(url).json()
    assert (seen["aggregate"], seen["needed_bytes"], seen["clones"]) == (
        *("aggr1", 50 * GIB),
        1,
    )
    codes = [(each["refusal"] or {}).get("code") for each in seen["aggregates"]]
    assert codes == ["same_aggregate", None, "no_room_to_move"]
    for verb in ("pause", "resume", "stop"):
        assert api.post(f"{url}/{verb}").json()["code"] == f"no_move_to_{verb}"
    assert api.post(url, body, format="json").status_code == 202
    assert Move.objects.get().destination == "aggr2"
    assert api.get(url).json()["refusal"]["code"] == "volume_busy"
    assert api.post(f"{url}/stop").status_code == 202
