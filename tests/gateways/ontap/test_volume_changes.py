"""A change counts as made only once a read shows it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from provisioner.gateways.ontap.gateway import OntapGateway
from tests.gateways.ontap.peer import Answer, running_peer

UUID = "fcbc1299-0f1c-11f0-8de9-0242ac120002"
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
