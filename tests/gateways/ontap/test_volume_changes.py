"""A change counts as made only once a read shows it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from provisioner.gateways.errors import Refused
from provisioner.gateways.ontap.gateway import OntapGateway
from tests.gateways.ontap.peer import Answer, running_peer

UUID = "fcbc1299-0f1c-11f0-8de9-0242ac120002"
ENDED = Answer(body={"job": {"uuid": UUID}})
VOLUME = Answer(body={"uuid": UUID, "name": "ws_1"})


def shows(answer: bool) -> Answer:
    body = {"uuid": UUID, "snapshot_directory_access_enabled": answer}
    return Answer(body=body)


def test_hiding_snapshots_is_waited_for(tmp_path: Path) -> None:
    answers = (Answer(), VOLUME, shows(True), VOLUME, shows(False))
    with (
        running_peer(tmp_path, *answers) as peer,
        closing(OntapGateway(peer.account())) as gateway,
    ):
        gateway.set_volume_policies(UUID, shows_snapshots=False)

    assert peer.answers == []


def test_a_job_that_ended_before_the_answer_is_not_asked_for(tmp_path: Path) -> None:
    mounted = Answer(body={"uuid": UUID, "name": "ws_1", "nas": {"path": "/ws_1"}})
    with (
        running_peer(tmp_path, ENDED, mounted) as peer,
        closing(OntapGateway(peer.account())) as gateway,
    ):
        volume = gateway.mount_volume(UUID, junction_path="/ws_1")

    assert volume.junction_path == "/ws_1"
    assert [asked.split()[0] for asked in peer.asked] == ["PATCH", "GET"]


def test_a_job_that_ended_without_the_effect_says_why(tmp_path: Path) -> None:
    failed = Answer(body={"uuid": UUID, "state": "failure", "code": 917536})
    with (
        running_peer(tmp_path, ENDED, VOLUME, failed, VOLUME) as peer,
        closing(OntapGateway(peer.account())) as gateway,
        pytest.raises(Refused) as error,
    ):
        gateway.mount_volume(UUID, junction_path="/ws_1")

    assert error.value.remote_code == "917536"
