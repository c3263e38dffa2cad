"""The lab is for trying: a real installation must not point at it."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.checks import Tags, run_checks
from django.core.management import CommandError, call_command
from pytest_django import Settings

from tests.support.factories import SiteFactory

pytestmark = pytest.mark.django_db


def found() -> list[str]:
    messages = run_checks(
        tags=[Tags.database], include_deployment_checks=True, databases=["default"]
    )
    return [message.msg for message in messages if message.id == "cloneyard.E001"]


def test_real_sites_are_fine() -> None:
    SiteFactory.create(ontap_host="ontap.example.com", ontap_ca_file="/etc/ssl/ca.pem")
    SiteFactory.create(ontap_host="192.0.2.7")

    assert found() == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.1.1", "::1", "[::1]", "localhost"]
)
def test_a_site_on_loopback_is_the_lab(host: str) -> None:
    SiteFactory.create(name="demo", ontap_host=host)

    assert found() == ["The site “demo” points at the lab."]


def test_a_site_with_the_labs_certificate_is_the_lab(
    settings: Settings, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path
    ca_file = str(tmp_path / "lab" / "ontap" / "ca.pem")
    SiteFactory.create(name="demo", ontap_host="lab.example.com", ontap_ca_file=ca_file)

    assert len(found()) == 1


def test_development_may_use_the_lab(settings: Settings) -> None:
    settings.DEBUG = True
    SiteFactory.create()

    assert found() == []


def test_the_check_before_a_deployment_fails() -> None:
    SiteFactory.create(name="demo")

    with pytest.raises(CommandError, match=r"cloneyard\.E001"):
        call_command("check", "--deploy", "--database", "default")


def test_checks_without_a_database_ask_none() -> None:
    assert not [
        message
        for message in run_checks(include_deployment_checks=True)
        if message.id == "cloneyard.E001"
    ]
