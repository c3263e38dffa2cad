"""Accounts that the directory's people get: whose, with which uid, team and role."""

from __future__ import annotations

import pwd

import pytest
from django.test import Client
from pytest_django import Settings

from provisioner.accounts.models import Team, User
from tests.support.directory_people import ADMINISTRATORS, is_in, sign_in
from tests.support.factories import PASSWORD as LOCAL_PASSWORD
from tests.support.slapd import GROUPS, PEOPLE, Slapd

# --- accounts that exist


@pytest.mark.parametrize("adopts", [False, True])
def test_an_account_of_that_name_is_adopted_only_where_settings_say_so(
    adopts: bool, directory: Slapd, alice: User, settings: Settings
) -> None:
    settings.LDAP_ADOPTS_ACCOUNTS = adopts
    directory.person("alice")
    browser, answer = sign_in("alice")
    assert is_in(browser) == adopts
    assert ("There is an account “alice”" in answer.text) == (not adopts)
    # Whoever knew the password of before does not get in beside the directory.
    browser, _ = sign_in("alice", LOCAL_PASSWORD)
    assert is_in(browser) == (not adopts)


def test_the_password_kept_here_counts_for_nothing_beside_the_directory(
    directory: Slapd, settings: Settings
) -> None:
    directory.person("erin")
    sign_in("erin")
    erin = User.objects.get(username="erin")
    erin.set_password(LOCAL_PASSWORD)
    erin.save()
    browser, _ = sign_in("erin", LOCAL_PASSWORD)
    assert not is_in(browser)
    settings.DIRECTORY = None
    browser, _ = sign_in("erin", LOCAL_PASSWORD)
    assert is_in(browser)


@pytest.mark.parametrize("field", ["is_superuser", "is_service"])
def test_nobody_becomes_a_superuser_or_a_machine_by_name(
    field: str, directory: Slapd, alice: User, settings: Settings
) -> None:
    settings.LDAP_ADOPTS_ACCOUNTS = True
    User.objects.filter(pk=alice.pk).update(**{field: True})
    directory.person("alice")
    browser, answer = sign_in("alice")
    assert not is_in(browser)
    assert "enter a correct username and password" in answer.text


def test_a_closed_account_is_not_let_in(directory: Slapd) -> None:
    directory.person("judy")
    sign_in("judy")
    User.objects.filter(username="judy").update(is_active=False)
    browser, answer = sign_in("judy")
    assert not is_in(browser)
    assert "is closed" in answer.text


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"userAccountControl": "514"}, "disabled"),
        ({"nsAccountLock": "TRUE"}, "locked"),
        ({"accountExpires": "132539328000000000"}, "expired"),
        ({"shadowExpire": "1"}, "expired"),
    ],
)
def test_who_is_disabled_there_is_not_let_in(
    values: dict[str, str], why: str, directory: Slapd
) -> None:
    classes = ["shadowAccount"] if "shadowExpire" in values else []
    directory.person("kim", *classes, **values)
    browser, answer = sign_in("kim")
    assert not is_in(browser)
    assert f"Your account at Example is {why}" in answer.text
    assert not User.objects.filter(username="kim").exists()
    _, answer = sign_in("kim", "wrong")
    assert why not in answer.text


@pytest.mark.parametrize(
    "values",
    [
        {"userAccountControl": "512", "accountExpires": "9223372036854775807"},
        {"accountExpires": "0", "nsAccountLock": "FALSE"},
        {"accountExpires": "166096800000000000"},
        {"shadowExpire": "-1"},
        {"shadowExpire": "99999"},
    ],
)
def test_who_is_not_is_let_in(values: dict[str, str], directory: Slapd) -> None:
    classes = ["shadowAccount"] if "shadowExpire" in values else []
    directory.person("kim", *classes, **values)
    browser, _ = sign_in("kim")
    assert is_in(browser)


def test_a_password_of_the_directory_is_changed_there(
    directory: Slapd, as_admin: Client
) -> None:
    directory.person("erin")
    browser, _ = sign_in("erin")
    assert "that of Example: change it there" in browser.get("/me/password/").text
    erin = User.objects.get(username="erin")
    form = {"password": "a-quite-long-new-one", "mail": ""}
    answer = as_admin.post(f"/people/{erin.pk}/password/", form, follow=True)
    assert "The password of erin is that of Example" in answer.text
    del form["mail"]
    answer = as_admin.post(f"/people/{erin.pk}/password/", form)
    assert "The password of erin is that of Example" in answer.text
    erin.refresh_from_db()
    assert not erin.has_usable_password()


# --- uid and gid


def test_a_uid_of_another_account_is_refused_and_nothing_is_left(
    directory: Slapd, alice: User
) -> None:
    numbers = {"uidNumber": str(alice.uid), "gidNumber": str(alice.gid)}
    directory.person("grace", "posixAccount", homeDirectory="/", **numbers)
    browser, answer = sign_in("grace")
    assert not is_in(browser)
    assert f"belongs to the account “{alice.username}”" in answer.text
    assert not User.objects.filter(username="grace").exists()


def test_uids_of_the_system_are_not_given(directory: Slapd) -> None:
    numbers = {"uidNumber": "0", "gidNumber": "0"}
    directory.person("heidi", "posixAccount", homeDirectory="/", **numbers)
    sign_in("heidi")
    assert User.objects.get(username="heidi").uid is None


def test_without_attributes_the_directory_of_the_host_says_the_uid(
    directory: Slapd,
) -> None:
    there = pwd.getpwnam("nobody")
    directory.person("nobody")
    sign_in("nobody")
    account = User.objects.get(username="nobody")
    assert (account.uid, account.gid) == (there.pw_uid, there.pw_gid)


def test_a_rule_makes_uids_of_sids(directory: Slapd, settings: Settings) -> None:
    settings.DIRECTORY = directory.directory(id_base=1_000_000)
    sid = bytes.fromhex("010500000000000515000000") + bytes(12)
    sid += (1105).to_bytes(4, "little")
    directory.person("ivan", objectSid=sid, primaryGroupID="513")
    sign_in("ivan")
    ivan = User.objects.get(username="ivan")
    assert (ivan.uid, ivan.gid) == (1_001_105, 1_000_513)


# --- Active Directory's names of things


def test_people_are_found_by_the_names_of_active_directory(
    directory: Slapd, settings: Settings
) -> None:
    settings.DIRECTORY = directory.directory(
        id_attribute="objectGUID",
        username_attribute="sAMAccountName",
        user_filter="(sAMAccountName={name})",
    )
    guid = bytes(range(0xA0, 0xB0))
    directory.person("x1", sAMAccountName="Lea", objectGUID=guid)
    sign_in("lea")
    lea = User.objects.get(username="Lea")
    assert lea.identity.subject == "a3a2a1a0-a5a4-a7a6-a8a9-aaabacadaeaf"


# --- teams and the role


def test_groups_give_and_take_the_role_and_the_team(directory: Slapd) -> None:
    team = Team.objects.create(name="Rendering")
    frank = directory.person("frank")
    admins = directory.group(ADMINISTRATORS, frank, PEOPLE)
    directory.group("Rendering", frank)
    sign_in("frank")
    account = User.objects.get(username="frank")
    assert account.is_administrator
    assert not account.is_superuser
    assert account.team == team

    directory.leave(admins, frank)
    sign_in("frank")
    account.refresh_from_db()
    assert not account.is_administrator


def test_a_group_named_by_its_place_is_no_other_of_that_name(
    directory: Slapd, settings: Settings
) -> None:
    settings.LDAP_ADMINISTRATORS = [f"CN={ADMINISTRATORS}, {GROUPS}"]
    under = directory.add(f"ou=own,{GROUPS}", "organizationalUnit", ou="own")
    frank, mallory = directory.person("frank"), directory.person("mallory")
    directory.group(ADMINISTRATORS, frank)
    directory.group(ADMINISTRATORS, mallory, under=under)
    sign_in("frank")
    sign_in("mallory")
    assert User.objects.get(username="frank").is_administrator
    assert not User.objects.get(username="mallory").is_administrator
