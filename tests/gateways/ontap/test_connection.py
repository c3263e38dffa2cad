"""Whatever listens at ONTAP's address, the caller gets an answer or our error."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from provisioner.gateways.errors import (
    AuthFailed,
    Busy,
    GatewayError,
    InUse,
    NotFound,
    Refused,
    Unreachable,
)
from provisioner.gateways.ontap.connection import OntapConnection
from provisioner.gateways.ontap.types import OntapAccount
from tests.gateways.ontap.peer import PASSWORD, Answer, Peer, running_peer

JOB = "fcbc1299-0f1c-11f0-8de9-0242ac120002"
ACCEPTED = Answer(status=202, body={"job": {"uuid": JOB}})


def job(state: str, **more: Any) -> Answer:
    return Answer(body={"uuid": JOB, "state": state, **more})


def not_there() -> Answer:
    return Answer(
        status=404, body={"error": {"code": "4", "message": "entry doesn't exist"}}
    )


@contextmanager
def connected(
    account: OntapAccount, *, job_limit_seconds: float = 5
) -> Iterator[OntapConnection]:
    connection = OntapConnection(account, job_limit_seconds=job_limit_seconds)
    try:
        yield connection
    finally:
        connection.close()


def ask(account: OntapAccount) -> dict[str, Any]:
    with connected(account) as connection:
        return connection.get("/cluster", query={})


def change(
    peer: Peer, *, method: str = "POST", job_limit_seconds: float = 5
) -> list[str]:
    """Send a change; return the ONTAP jobs that were announced."""
    started: list[str] = []
    with connected(peer.account(), job_limit_seconds=job_limit_seconds) as connection:
        connection.write(
            method,
            "/storage/volumes",
            body={"name": "a"},
            ontap_job_started=started.append,
        )
    return started


# --- answers


def test_a_request_has_our_account(tmp_path: Path) -> None:
    with running_peer(tmp_path, Answer(body={"name": "sim1"})) as peer:
        assert ask(peer.account()) == {"name": "sim1"}
    assert peer.headers[0]["Authorization"].startswith("Basic ")


def test_an_empty_answer_is_an_answer(tmp_path: Path) -> None:
    with running_peer(tmp_path, Answer()) as peer:
        assert ask(peer.account()) == {}


@pytest.mark.parametrize("body", [b"<html>welcome</html>", b"[1, 2]"])
def test_an_answer_that_is_not_ontaps_is_no_answer(body: bytes, tmp_path: Path) -> None:
    with (
        running_peer(tmp_path, Answer(body=body)) as peer,
        pytest.raises(Unreachable),
    ):
        ask(peer.account())


def test_a_page_in_html_does_not_prove_that_something_is_gone(tmp_path: Path) -> None:
    page = Answer(status=404, body=b"<html>not here</html>")
    with running_peer(tmp_path, page) as peer, pytest.raises(GatewayError) as error:
        ask(peer.account())
    assert not isinstance(error.value, NotFound)


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    moved = Answer(status=302, location="https://localhost/elsewhere")
    with running_peer(tmp_path, moved) as peer, pytest.raises(Refused):
        ask(peer.account())
    assert len(peer.asked) == 1


def test_a_refusal_has_ontaps_code_and_words(tmp_path: Path) -> None:
    with running_peer(tmp_path, not_there()) as peer, pytest.raises(NotFound) as error:
        ask(peer.account())
    assert error.value.remote_code == "4"
    assert "entry doesn't exist" in error.value.sentence


def test_all_pages_are_read(tmp_path: Path) -> None:
    following = "/api/storage/volumes?start.uuid=2&max_records=1"
    pages = (
        Answer(
            body={"records": [{"n": 1}], "_links": {"next": {"href": following}}},
        ),
        Answer(body={"records": [{"n": 2}], "num_records": 1}),
    )
    with (
        running_peer(tmp_path, *pages) as peer,
        connected(peer.account()) as connection,
    ):
        records = connection.get_records("/storage/volumes", query={"max_records": 1})
    assert records == [{"n": 1}, {"n": 2}]
    assert peer.asked == [
        "GET /api/storage/volumes?max_records=1",
        f"GET {following}",
    ]


def test_pages_that_go_round_in_a_circle_have_an_end(tmp_path: Path) -> None:
    page = Answer(
        body={"records": [], "_links": {"next": {"href": "/api/storage/volumes"}}}
    )
    with (
        running_peer(tmp_path, page, page, page) as peer,
        connected(peer.account()) as connection,
    ):
        connection.get_records("/storage/volumes", query={})
    assert len(peer.asked) == 2


# --- no answer


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        account = OntapAccount(
            host="localhost",
            port=port,
            user="cloneyard",
            password=PASSWORD,
            ca_file="",
            svm="svm1",
        )
        with pytest.raises(Unreachable) as error:
            ask(account)
    assert f"localhost:{port}" in error.value.sentence


def test_silence_ends_after_the_time_allowed(tmp_path: Path) -> None:
    silent = Answer(delay_seconds=60)
    started = time.monotonic()
    with running_peer(tmp_path, silent) as peer:
        peer.timeout_seconds = 1.0
        with pytest.raises(Unreachable) as error:
            change(peer)
    assert time.monotonic() - started < 30
    assert "in time" in error.value.sentence


def test_silence_is_not_borne_twice_by_somebody_who_waits(tmp_path: Path) -> None:
    silent = Answer(delay_seconds=60)
    with running_peer(tmp_path, silent, silent) as peer:
        started = time.monotonic()
        account = replace(peer.account(), answers_until=started + 2)
        with connected(account) as connection:
            for _ in range(2):
                with pytest.raises(Unreachable, match="in time"):
                    connection.get("/cluster", query={})
        assert time.monotonic() - started < 30
    assert len(peer.asked) == 1


def test_a_question_that_broke_off_is_asked_again(tmp_path: Path) -> None:
    answers = (Answer(cuts=True), Answer(body={"name": "sim1"}))
    with running_peer(tmp_path, *answers) as peer:
        assert ask(peer.account()) == {"name": "sim1"}


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
def test_a_change_that_broke_off_is_never_sent_again(
    method: str, tmp_path: Path
) -> None:
    with (
        running_peer(tmp_path, Answer(cuts=True)) as peer,
        pytest.raises(Unreachable),
    ):
        change(peer, method=method)
    assert len(peer.asked) == 1


# --- TLS


def test_a_certificate_of_another_authority_is_not_accepted(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with running_peer(tmp_path) as peer, running_peer(other) as stranger:
        account = peer.account(ca_file=str(stranger.ca_file))
        with pytest.raises(AuthFailed):
            ask(account)
    assert peer.asked == []


def test_the_system_does_not_vouch_for_an_unknown_authority(tmp_path: Path) -> None:
    with running_peer(tmp_path) as peer, pytest.raises(AuthFailed):
        ask(peer.account(ca_file=""))


def test_a_ca_file_that_is_not_there_is_named_as_the_reason(tmp_path: Path) -> None:
    with running_peer(tmp_path) as peer, pytest.raises(AuthFailed) as error:
        ask(peer.account(ca_file=str(tmp_path / "nothing.pem")))
    assert "CA file" in error.value.sentence


def test_the_environment_does_not_replace_our_ca_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with (
        running_peer(other) as stranger,
        running_peer(tmp_path, Answer(body={"name": "sim1"})) as peer,
    ):
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(stranger.ca_file))
        assert ask(peer.account()) == {"name": "sim1"}


# --- ONTAP jobs


def test_a_job_is_announced_before_it_is_waited_for(tmp_path: Path) -> None:
    asked_when_announced: list[int] = []
    with (
        running_peer(tmp_path, ACCEPTED, job("running"), job("success")) as peer,
        connected(peer.account()) as connection,
    ):
        connection.write(
            "POST",
            "/storage/volumes",
            ontap_job_started=lambda _: asked_when_announced.append(len(peer.asked)),
        )
    assert asked_when_announced == [1]
    assert peer.asked[0] == "POST /api/storage/volumes?return_timeout=2"
    assert len(peer.asked) == 3


def test_a_change_made_at_once_has_no_job(tmp_path: Path) -> None:
    with running_peer(tmp_path, Answer(status=201, body={})) as peer:
        assert change(peer) == []


def test_a_job_that_is_over_when_the_answer_comes_is_named_and_may_be_read(
    tmp_path: Path,
) -> None:
    done = Answer(status=201, body={"job": {"uuid": JOB}})
    with (
        running_peer(tmp_path, done, job("failure", code=917526)) as peer,
        connected(peer.account()) as connection,
    ):
        ended = connection.write("POST", "/a", ontap_job_started=pytest.fail)
        assert ended == JOB
        with pytest.raises(GatewayError) as error:
            connection.require_success(ended, operation="POST /a")
    assert error.value.remote_code == "917526"


def test_who_waits_less_than_ontap_would_gets_its_answer_at_once(
    tmp_path: Path,
) -> None:
    with running_peer(tmp_path, Answer(status=201, body={})) as peer:
        peer.timeout_seconds = 1.0
        change(peer)
    assert peer.asked[0].startswith("POST /api/storage/volumes?return_timeout=0")


def test_a_failed_job_means_what_its_code_means(tmp_path: Path) -> None:
    failed = job(
        "failure",
        code=1638555,
        message="ONTAP job failed",
        error={"code": "1638555", "message": "Snapshot copy has not expired"},
    )
    with (
        running_peer(tmp_path, ACCEPTED, failed) as peer,
        pytest.raises(InUse) as error,
    ):
        change(peer)
    assert "has not expired" in error.value.sentence


def test_a_job_that_failed_for_now_is_not_read_again(tmp_path: Path) -> None:
    failed = job("failure", code=524486, message="volume is busy")
    with running_peer(tmp_path, ACCEPTED, failed) as peer, pytest.raises(Busy) as error:
        change(peer)
    assert error.value.remote_code == "524486"
    assert len(peer.asked) == 2


def test_the_state_decides_and_not_the_message(tmp_path: Path) -> None:
    odd = job("success", message="failure is not an option", code=0)
    with running_peer(tmp_path, ACCEPTED, odd) as peer:
        assert change(peer) == [JOB]


def test_a_forgotten_job_has_not_failed(tmp_path: Path) -> None:
    with running_peer(tmp_path, ACCEPTED, not_there()) as peer:
        assert change(peer) == [JOB]


@pytest.mark.parametrize("state", ["cancelled", "expired"])
def test_a_job_cut_short_is_refused(state: str, tmp_path: Path) -> None:
    with running_peer(tmp_path, ACCEPTED, job(state)) as peer, pytest.raises(Refused):
        change(peer)


def test_a_job_without_end_is_left_running(tmp_path: Path) -> None:
    going_on = [job("paused") for _ in range(50)]
    with (
        running_peer(tmp_path, ACCEPTED, *going_on) as peer,
        pytest.raises(Busy) as error,
    ):
        change(peer, job_limit_seconds=0.2)
    assert JOB in error.value.sentence


def test_a_check_at_a_job_may_fail_now_and_then(tmp_path: Path) -> None:
    away = Answer(status=503, body={"error": {"code": "0", "message": "busy"}})
    with running_peer(
        tmp_path, ACCEPTED, away, job("running"), away, job("success")
    ) as peer:
        assert change(peer) == [JOB]


def test_a_job_that_cannot_be_read_is_given_up(tmp_path: Path) -> None:
    away = Answer(status=503)
    with running_peer(tmp_path, ACCEPTED, *[away] * 10) as peer, pytest.raises(Busy):
        change(peer)
    assert len(peer.asked) == 5


# --- secrets


def test_the_password_is_in_no_error(tmp_path: Path) -> None:
    refused = Answer(
        status=401, body={"error": {"code": "6691623", "message": "not authorized"}}
    )
    with running_peer(tmp_path, refused) as peer, pytest.raises(AuthFailed) as error:
        ask(peer.account())
    assert PASSWORD not in repr(error.value) + str(error.value.log_context())
    assert PASSWORD not in repr(peer.account())
