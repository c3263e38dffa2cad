"""Answers of a provider that lies, each in one way: none signs anybody in."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.auth import SESSION_KEY
from django.test import Client
from jwt.algorithms import RSAAlgorithm
from pytest_django import Settings
from structlog.testing import capture_logs

from provisioner.accounts.models import User
from provisioner.single_sign_on import provider as provider_module

SUBJECT = "7f3a"
MISSING = object()
ENDLESS = object()
KEY, ANOTHER_KEY = (rsa.generate_private_key(65537, 2048) for _ in range(2))


class Liar(ThreadingHTTPServer):
    """A provider whose answers are what a test says."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.issuer = f"http://127.0.0.1:{self.server_port}"
        self.key = KEY
        public = RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        self.redirects: dict[str, str] = {}
        self.says: dict[str, Any] = {
            "/.well-known/openid-configuration": {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "userinfo_endpoint": f"{self.issuer}/about",
                "jwks_uri": f"{self.issuer}/keys",
            },
            "/keys": {"keys": [{**public, "kid": "1", "alg": "RS256"}]},
            "/about": {"sub": SUBJECT, "preferred_username": "erin"},
        }

    def token(self, *, alg: str = "RS256", key: Any = "", **lies: Any) -> str:
        """Return an ID token that is right but for what a test wants otherwise."""
        claims = {
            "iss": self.issuer,
            "aud": "cloneyard",
            "sub": SUBJECT,
            "iat": time.time(),
            "exp": time.time() + 300,
        } | lies
        given = {name: value for name, value in claims.items() if value is not MISSING}
        signed_with = "" if alg == "none" else key or self.key
        return jwt.encode(given, signed_with, algorithm=alg, headers={"kid": "1"})


class Answers(BaseHTTPRequestHandler):
    server: Liar

    def do_GET(self) -> None:
        if elsewhere := self.server.redirects.get(self.path):
            self.send_response(307)
            self.send_header("Location", elsewhere)
            self.end_headers()
            return
        said = self.server.says[self.path]
        if said is ENDLESS:
            self.send_response(200)
            self.end_headers()
            with suppress(ConnectionError):
                while True:
                    self.wfile.write(b" " * 100_000)
            return
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def liar(settings: Settings, db: None) -> Iterator[Liar]:
    server = Liar()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings.OIDC_ISSUER = server.issuer
    settings.OIDC_NAME = "Example"
    settings.OIDC_RP_CLIENT_ID = "cloneyard"
    settings.OIDC_RP_CLIENT_SECRET = "s3cret-of-the-client-of-32-bytes"
    settings.AUTHENTICATION_BACKENDS = [
        *settings.AUTHENTICATION_BACKENDS,
        "provisioner.single_sign_on.backends.SingleSignOn",
    ]
    settings.ALLOWED_HOSTS = ["localhost"]
    provider_module._read.clear()
    yield server
    server.shutdown()
    server.server_close()


def signs_in(liar: Liar, *, tokens: Any = None, **lies: Any) -> bool:
    """Go there and come back; return whether somebody is signed in afterwards."""
    browser = Client(HTTP_HOST="localhost")
    begun = parse_qs(urlsplit(browser.get("/single-sign-on/")["Location"]).query)
    nonce, state = begun["nonce"][0], begun["state"][0]
    token = liar.token(**{"nonce": nonce, **lies})
    liar.says["/token"] = tokens or {"id_token": token, "access_token": "a"}
    answer = browser.get(f"/single-sign-on/callback/?code=1&state={state}")
    is_in = SESSION_KEY in browser.session
    assert answer["Location"] == ("/" if is_in else "/login/")
    assert User.objects.filter(username="erin").exists() == is_in
    return is_in


def test_a_right_answer_signs_in(liar: Liar) -> None:
    assert signs_in(liar)


@pytest.mark.parametrize(
    "lies",
    [
        {"exp": 1},
        {"exp": MISSING},
        {"nbf": 2**33},
        {"iat": 2**33},
        {"iss": "https://login.example.com"},
        {"iss": MISSING},
        {"aud": "another"},
        {"aud": MISSING},
        {"aud": ["cloneyard", "another"], "azp": "another"},
        {"nonce": "another"},
        {"nonce": MISSING},
        {"sub": "another"},
        {"sub": MISSING},
        {"sub": ""},
        {"alg": "none"},
        {"alg": "HS256", "key": "s3cret-of-the-client-of-32-bytes"},
        {"key": ANOTHER_KEY},
    ],
    ids=lambda lies: "-".join(lies),
)
def test_a_token_with_one_lie_signs_nobody_in(lies: dict[str, Any], liar: Liar) -> None:
    assert not signs_in(liar, **lies)


@pytest.mark.parametrize("about", [{"sub": "another"}, {}, [], None, "erin"])
def test_a_person_who_is_not_the_tokens_is_not_signed_in(
    about: Any, liar: Liar
) -> None:
    liar.says["/about"] = about
    assert not signs_in(liar)


@pytest.mark.parametrize("tokens", [{"id_token": None}, {"id_token": 7}])
def test_an_answer_without_a_token_signs_nobody_in(tokens: Any, liar: Liar) -> None:
    assert not signs_in(liar, tokens=tokens)


KEYS_THAT_ARE_NONE = [
    {},
    {"keys": []},
    {"keys": [{}]},
    {"keys": 7},
    {"keys": None},
    {"keys": "kid"},
    {"keys": [7]},
    {"keys": [{"kid": "1", "kty": "RSA", "alg": "RS256", "n": 7, "e": "AQAB"}]},
    {"keys": [{"kid": "1", "kty": "oct", "alg": "HS256", "k": "AAAA"}]},
    {"keys": [{"kid": "1", "kty": [], "alg": "RS256"}]},
]


def test_keys_that_are_none_sign_nobody_in(liar: Liar) -> None:
    for keys in KEYS_THAT_ARE_NONE:
        liar.says["/keys"] = keys
        assert not signs_in(liar), keys


# A list, a number, a page of a proxy, one cut off, one deeper than Python reads.
NO_OBJECTS = [b"[]", b"7", b"null", b"<html>", b'{"id_token": "', b"\xff", b"[" * 10**5]


@pytest.mark.parametrize(
    ("path", "named"),
    [("/token", "token"), ("/keys", "key set"), ("/about", "userinfo")],
)
def test_an_answer_that_is_no_object_is_refused_with_a_sentence(
    path: str, named: str, liar: Liar
) -> None:
    for body in NO_OBJECTS:
        liar.says[path] = body
        with capture_logs() as logs:
            assert not signs_in(liar, tokens=body if path == "/token" else None)
        (line,) = [line for line in logs if line["event"] == "single_sign_on_refused"]
        assert line["code"] == "provider_answer_not_valid"
        assert named in line["sentence"]


@pytest.mark.parametrize(
    ("path", "named"),
    [("/token", "token answer"), ("/keys", "key set"), ("/about", "userinfo")],
)
def test_an_answer_without_end_is_refused_with_a_sentence(
    path: str, named: str, liar: Liar
) -> None:
    liar.says[path] = ENDLESS
    with capture_logs() as logs:
        assert not signs_in(liar, tokens=ENDLESS if path == "/token" else None)
    (line,) = [line for line in logs if line["event"] == "single_sign_on_refused"]
    assert f"its {named} is longer than 1,000,000 bytes" in line["sentence"]


def test_a_discovery_document_without_end_is_refused_with_a_sentence(
    liar: Liar,
) -> None:
    liar.says["/.well-known/openid-configuration"] = ENDLESS
    answer = Client(HTTP_HOST="localhost").get("/single-sign-on/", follow=True)
    assert "its discovery document is longer than 1,000,000 bytes" in answer.text


def test_no_redirect_of_a_provider_is_followed(liar: Liar) -> None:
    liar.redirects = {"/token": f"{liar.issuer}/about"}
    assert not signs_in(liar)


def test_a_discovery_document_that_is_no_object_is_refused_with_a_sentence(
    liar: Liar,
) -> None:
    for body in NO_OBJECTS:
        liar.says["/.well-known/openid-configuration"] = body
        answer = Client(HTTP_HOST="localhost").get("/single-sign-on/", follow=True)
        assert answer.redirect_chain == [("/login/", 302)]
        assert "its discovery document is not" in answer.content.decode()
