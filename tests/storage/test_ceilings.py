"""Ceilings for the traffic of volumes, applied in the lab's ONTAP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.test import Client
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Template
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.lib.refusals import ActionRefused
from provisioner.sites.models import Ceiling, Site
from provisioner.storage.actions import ceiling_save
from provisioner.storage.ceilings import keep_ceilings
from provisioner.storage.sweeps import sweep_ceilings
from provisioner.storage.tasks import keep_ceilings_of
from provisioner.workspaces.models import Workspace
from tests.support.factories import UserFactory
from tests.support.jobs import settle
from tests.support.lab import Lab
from tests.support.ontap_scene import LabControl
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db(transaction=True)

BUILDS, TEMPLATES = Ceiling.Purpose.BUILDS, Ceiling.Purpose.TEMPLATES
EACH, SHARED = "cloneyard-lab-builds-each", "cloneyard-lab-builds-shared"


@pytest.fixture
def root(transactional_db: None) -> User:
    return UserFactory.create(username="alice", uid=20001, gid=20000, is_staff=True)


@pytest.fixture
def ontap(lab_site: Site, root: User) -> Iterator[OntapGateway]:
    """The site's ONTAP; no ceiling of ours is left in it."""
    yield registry.ontap(lab_site)
    for purpose in Ceiling.Purpose:
        limit(root, lab_site, purpose, None)
    keep_ceilings(lab_site)
    assert not Ceiling.objects.exists()


@pytest.fixture
def build(published_template: Template, root: User) -> Workspace:
    """A workspace for builds."""
    return settle(
        workspace_create(by=root, template=published_template, purpose="build")
    )


def limit(by: User, site: Site, purpose: str, iops: int | None, **more: bool) -> None:
    ceiling_save(
        by=by, site=site, purpose=purpose, max_iops=iops, max_mbps=None, **more
    )


def policy_of(ontap: OntapGateway, uuid: str) -> str:
    return next(each.policy for each in ontap.list_volume_qos() if each.uuid == uuid)


def test_volumes_get_their_ceiling_at_creation_and_later_and_lose_it(
    build: Workspace, ontap: OntapGateway, root: User, published_template: Template
) -> None:
    site, template = build.site, published_template
    limit(root, site, BUILDS, 500)
    limit(root, site, TEMPLATES, 900)

    keep_ceilings(site)

    assert policy_of(ontap, build.volume_uuid) == EACH
    assert policy_of(ontap, template.volume_uuid) == "cloneyard-lab-templates-each"
    [told] = Event.objects.filter(kind="ceilings_applied")
    assert f"QoS policy {EACH} given to volumes: 1." in told.message
    keep_ceilings(site)
    assert Event.objects.filter(kind="ceilings_applied").count() == 1
    newer = settle(workspace_create(by=root, template=template, purpose="build"))
    assert policy_of(ontap, newer.volume_uuid) == EACH
    person = settle(workspace_create(by=root, template=template))
    assert policy_of(ontap, person.volume_uuid) == ""
    ontap.set_volume_qos(person.volume_uuid, policy="value-fixed")

    limit(root, site, BUILDS, 700, is_shared=True)
    keep_ceilings(site)
    assert policy_of(ontap, newer.volume_uuid) == SHARED
    assert ontap.find_qos_policy(EACH) is None
    limit(root, site, BUILDS, None)
    keep_ceilings(site)
    assert policy_of(ontap, newer.volume_uuid) == ""
    assert ontap.find_qos_policy(SHARED) is None
    assert policy_of(ontap, person.volume_uuid) == "value-fixed"
    assert list(Ceiling.objects.values_list("purpose", flat=True)) == [TEMPLATES]


def test_what_others_changed_is_put_back(
    build: Workspace, ontap: OntapGateway, root: User
) -> None:
    limit(root, build.site, BUILDS, 500)
    keep_ceilings(build.site)
    policy = ontap.find_qos_policy(EACH)
    assert policy is not None
    loose = replace(policy.spec, max_iops=90_000)
    ontap.set_qos_limits(policy.uuid, loose)
    ontap.set_volume_qos(build.volume_uuid, policy="")

    keep_ceilings(build.site)

    assert ontap.find_qos_policy(EACH) == policy
    assert policy_of(ontap, build.volume_uuid) == EACH
    ontap.delete_qos_policy(policy.uuid)
    # Until the next sweep, clones are made without it.
    newer = settle(workspace_create(by=root, template=build.template, purpose="build"))
    assert newer.state == Workspace.State.READY
    keep_ceilings(build.site)
    assert policy_of(ontap, newer.volume_uuid) == EACH


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/api/storage/qos/policies"), ("PATCH", "/api/storage/volumes*")],
)
def test_after_a_failure_and_a_lost_reply_the_next_attempt_goes_on(
    method: str,
    path: str,
    build: Workspace,
    ontap: OntapGateway,
    root: User,
    lab: Lab,
) -> None:
    limit(root, build.site, BUILDS, 500)
    fault = {"method": method, "path": path, "times": 1}
    lab.break_ontap({**fault, "status": 403, "code": "6"})
    with pytest.raises(GatewayError):
        keep_ceilings(build.site)
    assert "is not permitted" in Ceiling.objects.get().status_message
    lab.break_ontap({**fault, "drop": True, "when": "after"})
    keep_ceilings_of(build.site_id)
    assert "closed the connection" in Ceiling.objects.get().status_message

    lab.break_ontap()
    keep_ceilings_of(build.site_id)

    assert Ceiling.objects.get().status_message == ""
    assert policy_of(ontap, build.volume_uuid) == EACH


def test_it_is_reported_how_many_reached_it(
    build: Workspace,
    ontap: OntapGateway,
    root: User,
    as_admin: Client,
) -> None:
    limit(root, build.site, BUILDS, 500)
    control = LabControl(account=registry.ontap_account(build.site))
    keep_ceilings(build.site)
    assert "0 of 1 volume<" in as_admin.get("/policies/ceilings/").text
    control.set_settings(volume_iops=480)
    keep_ceilings(build.site)
    control.set_settings(volume_iops=0)
    seen = as_admin.get("/policies/ceilings/").text
    assert "500 IOPS (each volume)" in seen
    assert "1 of 1 volume<" in seen


def test_pages_and_api_save_a_ceiling_for_administrators_alone(
    lab_site: Site, as_admin: Client, as_carol: Client, carol: User, admin: User
) -> None:
    page = f"/policies/ceilings/{lab_site.pk}/builds/"
    assert as_carol.get(page).status_code == 403
    assert "/login/" in Client().get(page)["Location"]
    assert as_admin.get(f"/policies/ceilings/{lab_site.pk}/all/").status_code == 404
    answer = as_admin.post(page, {"max_iops": "0", "max_mbps": "a lot"})
    assert answer.status_code == 422
    assert "a lot" in answer.text
    assert as_admin.post(page, {"max_iops": "500"}).status_code == 302
    assert Ceiling.objects.get().max_iops == 500
    assert 'value="500"' in as_admin.get(page).text
    api, url = APIClient(), "/api/v1/storage/ceilings"
    body = {"site": "lab", "purpose": "builds", "max_iops": None, "max_mbps": 200}
    assert api.get(url).status_code == 401
    api.force_authenticate(carol)
    assert api.get(url).status_code == 403
    assert api.post(url, body, format="json").status_code == 403
    api.force_authenticate(admin)
    assert api.post(url, body, format="json").status_code == 202
    [shown] = api.get(url).json()["results"]
    assert (shown["max_iops"], shown["max_mbps"]) == (None, 200)
    assert Event.objects.filter(kind="ceiling_changed").count() == 2
    with pytest.raises(ActionRefused):
        limit(carol, lab_site, BUILDS, 1)
    sweep_ceilings(timestamp=0)
