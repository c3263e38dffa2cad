"""Light or dark, as a browser was told or as its system is."""

from __future__ import annotations

import pytest
from django.test import Client


def choose(browser: Client, theme: str, *, back: str = "/tokens/") -> str:
    answer = browser.post("/theme/", {"theme": theme, "next": back})
    assert answer.status_code == 302
    return answer["Location"]


def test_a_page_follows_the_system_at_first(as_carol: Client) -> None:
    page = as_carol.get("/").text
    assert "data-theme" not in page
    assert 'content="light dark"' in page


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_next_page_arrives_in_the_chosen_theme(
    theme: str, as_carol: Client
) -> None:
    assert choose(as_carol, theme) == "/tokens/"

    page = as_carol.get("/").text
    assert f'<html lang="en" data-theme="{theme}">' in page
    assert f'<meta name="color-scheme" content="{theme}">' in page
    assert f'value="{theme}" aria-pressed="true"' in page


def test_the_system_is_followed_again(as_carol: Client) -> None:
    choose(as_carol, "dark")
    choose(as_carol, "system")
    assert "data-theme" not in as_carol.get("/").text


def test_somebody_who_has_not_signed_in_chooses_too(as_nobody: Client) -> None:
    assert choose(as_nobody, "dark", back="/login/") == "/login/"
    assert 'data-theme="dark"' in as_nobody.get("/login/").text


@pytest.mark.parametrize("back", ["https://evil.example/", "//evil.example/", ""])
def test_nobody_is_led_to_other_servers(back: str, as_carol: Client) -> None:
    assert choose(as_carol, "dark", back=back) == "/"


def test_a_cookie_that_names_no_theme_changes_nothing(as_carol: Client) -> None:
    as_carol.cookies["theme"] = '"><script>'
    page = as_carol.get("/").text
    assert "data-theme" not in page
    assert 'value="system" aria-pressed="true"' in page
