"""`cloneyard-server check --deploy` asks the directory."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.checks import run_checks
from pytest_django import Settings

from provisioner.accounts.models import User
from tests.support.slapd import GROUPS, PEOPLE, Slapd


def said(kind: str = "cloneyard.W002") -> list[str]:
    messages = run_checks(include_deployment_checks=True, databases=["default"])
    return [message.msg for message in messages if message.id == kind]


def test_a_directory_that_answers_is_fine(directory: Slapd, admin: User) -> None:
    directory.person("erin")
    assert said() == []
    assert said("cloneyard.W003") == []


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"urls": ("ldaps://127.0.0.1:9",)}, "does not answer"),
        ({"ca_file": ""}, "certificate verify failed"),
        ({"bind_password": "changed"}, "LDAP_BIND_PASSWORD"),
        ({"user_base": f"ou=gone,{PEOPLE}"}, "LDAP_USER_BASE"),
        ({"user_filter": "(&(uid={name})(sn=gone))"}, "LDAP_USER_FILTER"),
        ({"id_attribute": "objectGUID"}, "LDAP_ID_ATTRIBUTE"),
        ({"username_attribute": "sAMAccountName"}, "LDAP_USERNAME_ATTRIBUTE"),
        ({"group_base": f"ou=gone,{GROUPS}"}, "LDAP_GROUP_BASE"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named(
    changes: dict[str, Any], word: str, directory: Slapd, settings: Settings
) -> None:
    directory.person("erin")
    settings.DIRECTORY = directory.directory(**changes)
    [sentence] = said()
    assert word in sentence


def test_each_server_is_asked(directory: Slapd, settings: Settings) -> None:
    directory.person("erin")
    settings.DIRECTORY = directory.directory(
        urls=(directory.url, "ldaps://127.0.0.1:9")
    )
    [sentence] = said()
    assert sentence.startswith("ldaps://127.0.0.1:9:")


@pytest.mark.parametrize("flaw", ["is_superuser", "password", "is_active", None])
def test_somebody_has_to_get_in_without_it(
    flaw: str | None, directory: Slapd, admin: User
) -> None:
    if flaw == "password":
        admin.set_unusable_password()
    elif flaw is not None:
        setattr(admin, flaw, False)
    admin.save()
    assert bool(said("cloneyard.W003")) == (flaw is not None)
