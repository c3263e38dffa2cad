from __future__ import annotations

from django.test import Client

from provisioner.accounts.models import User
from tests.factories import PASSWORD


def test_signing_in_leads_to_my_workspaces(as_nobody: Client, alice: User) -> None:
    answer = as_nobody.post("/login/", {"username": "alice", "password": PASSWORD})
    assert answer.status_code == 302
    assert answer["Location"] == "/"


def test_signing_in_leads_back_to_where_one_was(as_nobody: Client, alice: User) -> None:
    page = as_nobody.get("/templates/")["Location"]
    answer = as_nobody.post(
        page, {"username": "alice", "password": PASSWORD, "next": "/templates/"}
    )
    assert answer["Location"] == "/templates/"


def test_signing_in_leads_to_no_other_site(as_nobody: Client, alice: User) -> None:
    answer = as_nobody.post(
        "/login/",
        {"username": "alice", "password": PASSWORD, "next": "https://evil.example/"},
    )
    assert answer["Location"] == "/"


def test_a_wrong_password_says_so(as_nobody: Client, alice: User) -> None:
    answer = as_nobody.post("/login/", {"username": "alice", "password": "wrong"})
    assert "enter a correct username and password" in answer.text
    assert 'role="alert"' in answer.text


def test_who_has_signed_in_is_not_asked_again(as_alice: Client) -> None:
    assert as_alice.get("/login/")["Location"] == "/"


def test_a_polling_page_whose_session_ended_reloads(as_nobody: Client) -> None:
    answer = as_nobody.get("/", headers={"HX-Request": "true"}, follow=True)
    assert answer["HX-Refresh"] == "true"


def test_signing_out_needs_a_post(as_alice: Client) -> None:
    assert as_alice.get("/logout/").status_code == 405
    assert as_alice.post("/logout/")["Location"] == "/login/"
    assert as_alice.get("/").status_code == 302
