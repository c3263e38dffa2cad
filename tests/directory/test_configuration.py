"""What cannot work, or would send passwords in clear text, stops the process."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from django.conf import settings

from provisioner.gateways.directory.configuration import BadConfiguration, Directory
from tests.support.directory_settings import GOOD


def test_what_is_empty_is_as_usual_for_the_kind() -> None:
    directory = Directory.of("active-directory", **GOOD)
    assert directory.name == "ldap.example.com"
    assert directory.id_attribute == "objectGUID"
    assert directory.groups == "chain"
    assert directory.group_base == GOOD["user_base"]
    assert directory.issuer == "ldap:dc=example,dc=com"
    assert "secret" not in repr(directory)
    assert Directory.of("openldap", **GOOD).id_attribute == "entryUUID"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"urls": ["ldap.example.com"]}, "LDAP_URLS"),
        ({"urls": ["https://ldap.example.com"]}, "LDAP_URLS"),
        ({"urls": ["ldaps://ldap.example.com:x"]}, "LDAP_URLS"),
        ({"urls": ["ldaps://cn=a:b@ldap.example.com"]}, "LDAP_URLS"),
        ({"urls": ["ldap://ldap.example.com"], "start_tls": False}, "clear text"),
        ({"user_base": ""}, "LDAP_USER_BASE"),
        ({"user_base": "example.com"}, "LDAP_USER_BASE"),
        ({"group_base": "groups"}, "LDAP_GROUP_BASE"),
        ({"user_filter": "(uid=*)"}, "LDAP_USER_FILTER"),
        ({"user_filter": "(uid={name}"}, "LDAP_USER_FILTER"),
        ({"user_filter": "uid={name}"}, "LDAP_USER_FILTER"),
        ({"id_attribute": "a b"}, "LDAP_ID_ATTRIBUTE"),
        ({"username_attribute": "uid)(x"}, "LDAP_USERNAME_ATTRIBUTE"),
        ({"groups": "all"}, "LDAP_GROUPS"),
        ({"bind_password": ""}, "LDAP_BIND_PASSWORD"),
        ({"bind_dn": ""}, "LDAP_BIND_DN"),
        ({"bind_dn": "", "bind_password": ""}, "LDAP_DIRECT_BIND"),
        ({"direct_bind": "uid=name"}, "LDAP_DIRECT_BIND"),
        ({"timeout_seconds": 0}, "LDAP_TIMEOUT_SECONDS"),
        ({"timeout_seconds": 600}, "LDAP_TIMEOUT_SECONDS"),
    ],
    ids=str,
)
def test_a_sentence_names_the_setting(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(BadConfiguration, match=named):
        Directory.of("openldap", **{**GOOD, **changes})


def test_a_kind_is_one_of_two() -> None:
    with pytest.raises(BadConfiguration, match="LDAP_KIND"):
        Directory.of("novell", **GOOD)


def test_the_process_stops_with_one_sentence() -> None:
    ended = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=settings.BASE_DIR,
        env={**os.environ, "LDAP_URLS": "ldap://ldap.example.com"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode != 0
    last = ended.stderr.strip().splitlines()[-1]
    assert last.endswith(
        "LDAP_USER_BASE has to be a name such as ou=people,dc=example,dc=com."
    )
