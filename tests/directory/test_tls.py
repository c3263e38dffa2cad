"""No password reaches a server that is not the directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trustme
from django.utils import timezone

from provisioner.gateways.directory.configuration import BadConfiguration
from provisioner.gateways.directory.gateway import DirectoryGateway
from provisioner.gateways.errors import Unreachable
from tests.support.slapd import OTHER_HOST, PASSWORD, Slapd


def signs_in(slapd: Slapd, **changes: Any) -> bool:
    gateway = DirectoryGateway(slapd.directory(**changes))
    return gateway.sign_in("erin", PASSWORD, now=timezone.now()) is not None


def test_ldaps_and_start_tls_are_both_checked(slapd: Slapd, tmp_path: Path) -> None:
    slapd.person("erin")
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    for url in (slapd.url, slapd.plain_url):
        assert signs_in(slapd, urls=(url,))
        with pytest.raises(Unreachable, match="certificate verify failed"):
            signs_in(slapd, urls=(url,), ca_file=str(other))
        with pytest.raises(Unreachable, match="certificate verify failed"):
            signs_in(slapd, urls=(url,), ca_file="")


def test_a_certificate_for_another_name_is_refused(slapd: Slapd) -> None:
    slapd.person("erin")
    for url in (slapd.url, slapd.plain_url):
        elsewhere = url.replace("127.0.0.1", OTHER_HOST)
        with pytest.raises(Unreachable, match="IP address mismatch"):
            signs_in(slapd, urls=(elsewhere,))


def test_clear_text_is_for_loopback_alone(slapd: Slapd) -> None:
    slapd.person("erin")
    assert signs_in(slapd, urls=(slapd.plain_url,), start_tls=False)
    with pytest.raises(BadConfiguration, match="clear text"):
        slapd.directory(urls=("ldap://ldap.example.com",), start_tls=False)
