"""Settings as people write them: the malformed ones are refused with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from provisioner.lib.environment import Environment, database_of, mail_of

Read = Callable[[Environment], Any]
REFUSED: list[tuple[str, Read, str]] = [
    ("maybe", lambda env: env.bool("X", default=False), "true or false"),
    ("1.5", lambda env: env.int("X", default=1), "a whole number, but is “1.5”"),
    ("-1", lambda env: env.int("X", default=1), "at least 0"),
    ("0", lambda env: env.int("X", default=1, least=1), "at least 1"),
    ("9" * 40, lambda env: env.int("X", default=1), "a whole number"),
    ("5s", lambda env: env.float("X", default=1.0), "a number, but is “5s”"),
    ("nan", lambda env: env.float("X", default=1.0), "a number"),
    ("0.01", lambda env: env.float("X", default=1.0, least=0.1), "at least 0.1"),
    ("loud", lambda env: env.choice("X", default="a", among=("a", "b")), "one of a, b"),
    ("10.0.0.0/33", lambda env: env.networks("X"), "10.0.0.0/33"),
    ("10.0.0.1/8", lambda env: env.networks("X"), "host bits"),
    ("Europe/Atlantis", lambda env: env.zone("X", default="UTC"), "Atlantis"),
    ("../../etc/passwd", lambda env: env.zone("X", default="UTC"), "a time zone"),
    ("example.com", lambda env: env.address("X", default=""), "like https://"),
    ("https://", lambda env: env.address("X", default=""), "like https://"),
    ("https://[", lambda env: env.address("X", default=""), "like https://"),
    ("https://a:b", lambda env: env.address("X", default=""), "like https://"),
    ("9" * 15, lambda env: env.int("X", default=1), "at most 1,000,000,000"),
    ("3", lambda env: env.float("X", default=1.0, most=2), "at most 2"),
    ("https://a", lambda env: env.hosts("X"), "without https://"),
    ("a,b:443", lambda env: env.hosts("X"), "without a port, and has “b:443”"),
    ("a b", lambda env: env.hosts("X"), "“a b”"),
    (".example.com", lambda env: env.hosts("X"), "“.example.com”"),
    ("a.example.com", lambda env: env.origins("X"), "origins such as https://"),
    ("https://a/", lambda env: env.origins("X"), "“https://a/”"),
    ("mount 'x", lambda env: env.command("X", default="mount"), "No closing quotation"),
    ("tools", lambda env: env.path("X"), "begins with /"),
    ("/a,b", lambda env: env.paths("X"), "and is “b”"),
    (f"{__file__}/logs", lambda env: env.directory("X", default=Path()), "is a file"),
    ("/nowhere.pem", lambda env: env.certificates("X"), "No such file"),
    (__file__, lambda env: env.certificates("X"), "it has none"),
    ("nobody", lambda env: env.mail_sender("X", default=""), "a mail address"),
    ("a@b@c", lambda env: env.mail_sender("X", default=""), "a mail address"),
]
ACCEPTED: list[tuple[str, Read, object]] = [
    (" True ", lambda env: env.bool("X", default=False), True),
    ("off", lambda env: env.bool("X", default=True), False),
    ("7", lambda env: env.int("X", default=1), 7),
    ("0.5", lambda env: env.float("X", default=1.0), 0.5),
    ("b", lambda env: env.choice("X", default="a", among=("a", "b")), "b"),
    ("10.0.0.7, 10.0.0.0/8", lambda env: env.networks("X"), ["10.0.0.7", "10.0.0.0/8"]),
    ("Europe/Berlin", lambda env: env.zone("X", default="UTC"), "Europe/Berlin"),
    ("http://a:8000", lambda env: env.address("X", default=""), "http://a:8000"),
    ("", lambda env: env.address("X", default=""), ""),
    ("", lambda env: env.bool("X", default=True), True),
    (" ", lambda env: env.int("X", default=5), 5),
    ("a_b, [::1],10.0.0.7", lambda env: env.hosts("X"), ["a_b", "[::1]", "10.0.0.7"]),
    ("*,.a.com", lambda env: env.hosts("X", patterns=True), ["*", ".a.com"]),
    ("", lambda env: env.hosts("X", default=["a"]), ["a"]),
    ("https://*.a.com:8443", lambda env: env.origins("X"), ["https://*.a.com:8443"]),
    ("", lambda env: env.command("X", default="mount -t nfs"), ["mount", "-t", "nfs"]),
    ("/a, /b", lambda env: env.paths("X"), ["/a", "/b"]),
    ("", lambda env: env.directory("X", default=Path("/srv")), Path("/srv")),
    ("", lambda env: env.certificates("X"), ""),
    ("A <a@mailhost>", lambda env: env.mail_sender("X", default=""), "A <a@mailhost>"),
]


def an_environment(**variables: str) -> Environment:
    env = Environment()
    env.ENVIRON = type(env.ENVIRON)(variables)
    return env


@pytest.mark.parametrize(("text", "read", "why"), REFUSED)
def test_what_is_malformed_is_refused_by_name(text: str, read: Read, why: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refusal:
        read(an_environment(X=text))

    assert str(refusal.value).startswith("X has to ")
    assert why in str(refusal.value)


@pytest.mark.parametrize(("text", "read", "value"), ACCEPTED)
def test_what_is_well_formed_is_read(text: str, read: Read, value: object) -> None:
    assert read(an_environment(X=text)) == value


def test_what_is_not_set_is_its_default() -> None:
    env = an_environment()

    assert (env.int("X", default=5), env.bool("X", default=True)) == (5, True)
    assert env.float("X", default=1800.0) == 1800.0
    assert env.networks("X") == []


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    away = tmp_path / "away"

    with pytest.raises(ImproperlyConfigured, match=f"X_FILE: {away} cannot be read"):
        an_environment(X_FILE=str(away)).str("X", default="")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"\xff\xfe")

    with pytest.raises(ImproperlyConfigured, match="UTF-8"):
        an_environment(X_FILE=str(key)).str("X", default="")


@pytest.mark.parametrize(
    "url",
    [
        "s3cret",
        "mysql://cloneyard:s3cret@host/name",
        "postgres://cloneyard:s3cret@host",
        "postgres://cloneyard:s3cret#x/y@host:port/name",
    ],
)
def test_a_bad_address_of_the_database_is_refused_without_its_password(
    url: str,
) -> None:
    with pytest.raises(ImproperlyConfigured, match="postgres://") as refusal:
        database_of(url)

    assert "s3cret" not in str(refusal.value)


def test_an_address_of_the_database_may_name_several_hosts() -> None:
    found = database_of("postgres://cloneyard:a%2Fb@one:5432,two:5433/name")

    assert (found["NAME"], found["PASSWORD"]) == ("name", "a/b")
    assert "one" in found["HOST"]
    assert "two" in found["HOST"]


@pytest.mark.parametrize(
    "url", ["s3cret", "http://user:s3cret@host", "smtp://user:s3cret@host:port"]
)
def test_a_bad_mail_server_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"smtp\+tls://") as refusal:
        mail_of(url)

    assert "s3cret" not in str(refusal.value)
