"""Messages to addresses that people gave: where they go, and how they are bounded."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from provisioner.gateways.webhooks.addresses import (
    LONGEST_URL,
    AddressRefused,
    check_address,
    read_networks,
    read_url,
    resolve,
)
from provisioner.gateways.webhooks.sending import Answer, post
from tests.support.webhook_receiver import Listener, listening

LOOPBACK = read_networks(["127.0.0.0/8"])
BODY = b'{"event": "test"}'


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as it:
        yield it


def send(url: str, **kwargs: Any) -> Answer:
    fields = {
        "body": BODY,
        "secret": "whsec_1",
        "event": "test",
        "message_id": "m1",
        "timestamp": 1760000000,
        "allowed": LOOPBACK,
    }
    return post(url, **{**fields, **kwargs})


def test_a_message_arrives_signed(listener: Listener) -> None:
    answer = send(listener.url)

    assert answer.is_taken
    assert (answer.code, answer.error) == (204, "")
    [heard] = listener.heard
    assert (heard.path, heard.body) == ("/hook?a=1", BODY)
    assert heard.headers["Host"] == f"127.0.0.1:{listener.port}"
    assert heard.headers["Content-Type"] == "application/json"
    assert heard.headers["Cloneyard-Event"] == "test"
    assert heard.headers["Cloneyard-Delivery"] == "m1"
    signed = heard.headers["Cloneyard-Timestamp"].encode() + b"." + heard.body
    expected = hmac.new(b"whsec_1", signed, hashlib.sha256).hexdigest()
    assert heard.headers["Cloneyard-Signature"] == f"v1={expected}"


def test_no_redirect_is_followed(listener: Listener) -> None:
    listener.codes = [302]

    answer = send(listener.url)

    assert not answer.is_taken
    assert answer.code == 302
    assert "redirect" in answer.error
    assert len(listener.heard) == 1


def test_what_they_answer_is_kept_as_text_a_database_takes(listener: Listener) -> None:
    listener.codes = [500]

    answer = send(listener.url)

    assert (answer.code, answer.error) == (500, "It answered 500.")
    assert answer.text == "because \ufffd of it"


def test_a_name_that_is_looked_up_for_too_long_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, listener: Listener
) -> None:
    is_over = threading.Event()

    def look_up(*asked: object, **options: object) -> list[object]:
        is_over.wait(10.0)
        raise socket.gaierror(socket.EAI_AGAIN, "late")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    answer = send(listener.url, all_seconds=0.2)
    is_over.set()

    assert answer.error == "Its name was not looked up in time."
    assert answer.seconds < 5.0
    assert listener.heard == []


def test_of_a_long_answer_little_is_read(listener: Listener) -> None:
    listener.trouble = "talks too much"

    answer = send(listener.url)

    assert answer.is_taken
    assert len(answer.text) == 500


@pytest.mark.parametrize("trouble", ["drips", "hangs up"])
def test_who_does_not_answer_is_waited_for_no_longer_than_allowed(
    listener: Listener, trouble: str
) -> None:
    listener.trouble = trouble
    began = time.monotonic()

    answer = send(listener.url, all_seconds=0.5)

    assert answer.code is None
    assert answer.error
    assert time.monotonic() - began < 30


def test_nobody_there_is_said_in_a_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        answer = send(f"http://127.0.0.1:{taken.getsockname()[1]}/")

    assert answer.code is None
    assert answer.error == "No connection: Connection refused."


def test_the_inside_is_not_reached_unless_it_is_allowed(listener: Listener) -> None:
    answer = send(listener.url, allowed=())

    assert listener.heard == []
    assert "127.0.0.1, which is not in the public Internet" in answer.error
    assert "WEBHOOK_ALLOWED_NETWORKS" in answer.error


def test_a_name_that_leads_inside_is_refused(listener: Listener) -> None:
    answer = send(f"http://localhost:{listener.port}/", allowed=())

    assert listener.heard == []
    assert "not in the public Internet" in answer.error


def test_a_name_is_looked_up_once_and_that_address_connected_to(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    really = socket.getaddrinfo

    def rebinding(host: str, *args: Any, **kwargs: Any) -> Any:
        """Answer with an allowed address first, with another one from then on."""
        if host == "moving.example":
            asked.append(host)
            host = "127.0.0.1" if len(asked) == 1 else "127.0.0.2"
        return really(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)

    answer = send(f"http://moving.example:{listener.port}/")

    assert answer.is_taken
    assert asked == ["moving.example"]
    assert listener.heard[0].headers["Host"] == f"moving.example:{listener.port}"


def test_certificates_are_those_of_the_name_not_of_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("hooks.example").configure_cert(context)
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    really = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *args, **kwargs: really("127.0.0.1", *args, **kwargs),
    )
    with listening(context=context) as listener:
        base = f":{listener.port}/hook"
        good = send(f"https://hooks.example{base}", ca_file=str(ca_file))
        other = send(f"https://other.example{base}", ca_file=str(ca_file))
        unknown = send(f"https://hooks.example{base}")

    assert good.is_taken, good.error
    assert len(listener.heard) == 1
    for answer in (other, unknown):
        assert answer.code is None
        assert answer.error.startswith("Its certificate or TLS is not right")


def is_refused(address: str, *, scheme: str = "https", allowed: Any = ()) -> bool:
    target = read_url(f"{scheme}://host.example/")
    try:
        check_address(ipaddress.ip_address(address), target=target, allowed=allowed)
    except AddressRefused:
        return True
    return False


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104 - refused, not bound
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fd00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:0:7f00:1::1",
        "fec0::1",
        "192.88.99.1",
        "192.0.0.8",
        "192.0.0.9",
        "3fff::1",
        "2001:1::1",
        "64:ff9b:1::1",
        "5f00::1",
        "::8.8.8.8",
        "::ffff:192.88.99.1",
        "64:ff9b::c058:6301",
        "2002:c058:6301::1",
    ],
)
def test_addresses_inside_are_refused_in_every_disguise(address: str) -> None:
    assert is_refused(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_the_public_internet_is_reached_by_tls_alone(address: str) -> None:
    assert not is_refused(address)
    assert is_refused(address, scheme="http")


def test_an_allowed_network_is_reached_by_plain_http_too() -> None:
    allowed = read_networks(["10.20.0.0/16", "fd00::/8"])
    assert not is_refused("10.20.3.4", scheme="http", allowed=allowed)
    assert not is_refused("fd00::1", allowed=allowed)
    assert is_refused("10.21.0.1", allowed=allowed)


@given(st.integers(min_value=0, max_value=2**32 - 1))
def test_an_ipv4_address_in_an_ipv6_one_is_judged_alike(number: int) -> None:
    plain = ipaddress.IPv4Address(number)
    mapped = ipaddress.IPv6Address((0xFFFF << 32) | number)
    translated = ipaddress.IPv6Address((0x64FF9B << 96) | number)
    assert is_refused(str(plain)) == is_refused(str(mapped))
    assert is_refused(str(plain)) == is_refused(str(translated))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://host.example/", "https://"),
        ("host.example/hook", "https://"),
        ("https://", "https://"),
        ("https://alice:secret@host.example/", "Leave name and password"),
        ("https://host.example/#x", "#"),
        ("https://host.example/a b", "plain ASCII"),
        ("https://host.example\\@127.0.0.1/", "plain ASCII"),
        ("https://höst.example/", "plain ASCII"),
        ("https://host.example/\r\nX-A: b", "plain ASCII"),
        ("https://host.example:99999/", "not an address"),
        ("https://[::1/", "not an address"),
        ("https://host.example/" + "a" * LONGEST_URL, "plain ASCII"),
    ],
)
def test_what_is_no_address_is_refused_with_a_reason(url: str, said: str) -> None:
    with pytest.raises(AddressRefused, match=said):
        read_url(url)


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    for url in (text, f"https://{text}", f"https://host.example{text}"):
        try:
            target = read_url(url)
        except AddressRefused:
            continue
        assert target.host
        assert "\r" not in target.path + target.host
        assert "\n" not in target.path + target.host


@pytest.mark.parametrize(
    "url",
    ["http://0177.0.0.1/", "http://2130706433/", "http://0x7f.1/", "http://127.1/"],
)
def test_loopback_in_odd_spellings_is_refused_once_it_is_looked_up(url: str) -> None:
    with pytest.raises((AddressRefused, OSError)):
        resolve(read_url(url), allowed=())
