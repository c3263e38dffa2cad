"""Which ONTAP releases SnapMirror connects, by NetApp's table."""

from __future__ import annotations

import pytest
from django.test import Client
from rest_framework.test import APIClient

from provisioner.mirrors.releases import remark_on
from provisioner.sites.models import Site, SiteCapacity
from tests.support.factories import MirrorFactory


@pytest.mark.parametrize(
    ("home", "site", "remark"),
    [
        ("9.16.1P4", "9.16.1", ""),
        ("9.16.1", "9.11.1P2", ""),
        ("9.19.1", "9.14.1", ""),
        ("9.14.1", "9.19.1", ""),
        ("9.19.1", "9.13.1", "Upgrade oslo to 9.14.1 or newer."),
        ("9.13.1", "9.19.1", "Upgrade rome to 9.14.1 or newer."),
        ("9.17.1", "9.11.1", "9.17.1 at rome with 9.11.1 at oslo: transfers may fail"),
        ("9.8", "9.14.1", "9.14.1 at oslo with 9.8 at rome"),
        ("9.9.1", "9.10.1", "cannot create the policy of a mirror over REST"),
        ("9.25.1", "9.11.1", ""),  # not in the table yet
        ("", "9.16.1", ""),
        ("9.16.1", "unknown", ""),
    ],
)
def test_a_remark_says_cause_and_remedy(home: str, site: str, remark: str) -> None:
    said = remark_on(home="rome", home_version=home, site="oslo", site_version=site)

    assert remark in said
    assert bool(said) == bool(remark)


def test_it_is_read_before_a_mirror_is_created_and_afterwards(
    as_admin: Client, as_carol: Client, api_as_carol: APIClient
) -> None:
    mirror = MirrorFactory.create()
    home = mirror.template.site
    Site.objects.update(perforce_server=home.perforce_server)
    other = Site.objects.create(
        **{**_columns(mirror.site), "name": "oslo", "svm": "svm_oslo"}
    )
    for site, version in ((home, "9.19.1"), (mirror.site, "9.13.1"), (other, "9.12.1")):
        SiteCapacity.objects.create(site=site, ontap_version=version)

    assert (
        f"Upgrade {mirror.site.name} to 9.14.1"
        in as_carol.get(f"/mirrors/{mirror.pk}/").text
    )
    [listed] = api_as_carol.get("/api/v1/mirrors").json()["results"]
    assert "Upgrade" in listed["figures"]["remark"]
    form = as_admin.get(f"/mirrors/new/?template={mirror.template_id}").text
    assert "Upgrade oslo to 9.14.1 or newer." in form


def _columns(site: Site) -> dict[str, object]:
    return {k: v for k, v in vars(site).items() if k not in ("_state", "id")}
