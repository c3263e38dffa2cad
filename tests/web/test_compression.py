"""Pages travel compressed, and their lengths say nothing of what is secret in them."""

from __future__ import annotations

import gzip

from django.test import Client


def test_pages_are_compressed_for_browsers_that_take_it(as_carol: Client) -> None:
    whole = as_carol.get("/templates/")
    answer = as_carol.get("/templates/", headers={"Accept-Encoding": "br, gzip"})

    assert answer["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in answer["Vary"]
    assert len(answer.content) < len(whole.content) / 2
    assert b"<h1>Templates</h1>" in gzip.decompress(answer.content)
    assert "Content-Encoding" not in whole


def test_one_page_has_many_lengths(as_carol: Client) -> None:
    lengths = {
        len(as_carol.get("/templates/", headers={"Accept-Encoding": "gzip"}).content)
        for _ in range(12)
    }
    assert len(lengths) > 3
