"""Who there is at a server, and proofs of passwords and tickets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from provisioner.gateways.errors import AuthFailed, Refused
from provisioner.gateways.perforce.gateway import PerforceGateway
from tests.support.perforce_scene import PerforceScene


def test_people_are_found_by_name_and_others_are_not(perforce: PerforceScene) -> None:
    user = perforce.account.user
    nobody = f"nobody-{perforce.tag}"
    found = perforce.gateway.people.find([user, nobody])
    assert set(found) == {user}
    assert found[user].user == user


def test_a_wildcard_finds_nobody(perforce: PerforceScene) -> None:
    assert perforce.gateway.people.find([f"{perforce.account.user[:3]}*"]) == {}
    with pytest.raises(Refused):
        perforce.gateway.people.find(["-a"])


def test_many_are_asked_for_in_several_commands(perforce: PerforceScene) -> None:
    names = [f"nobody-{number}" for number in range(120)]
    found = perforce.gateway.people.find([*names, perforce.account.user])
    assert set(found) == {perforce.account.user}


def test_our_own_password_is_proven_and_another_is_not(perforce: PerforceScene) -> None:
    gateway = PerforceGateway(perforce.account)
    groups = gateway.people.prove()
    user = perforce.account.user
    assert groups == gateway.people.groups_of([user])[user]
    for secret in ("wrong", "0123456789ABCDEF" * 2):
        other = PerforceGateway(replace(perforce.account, password=secret))
        with pytest.raises(AuthFailed):
            other.people.prove()
