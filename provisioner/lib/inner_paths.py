"""Paths of entries below a directory, as people write them."""

from __future__ import annotations

import os

from provisioner.lib.storable import as_named

LONGEST_PATH = 4096


def inner_path(text: str) -> str:
    """Return a path below some directory, without doubled and trailing slashes.

    It is relative, has no component “.” or “..”, and stays below the directory as long
    as no link is followed. Bytes that are no text are written as by `storable`.

    Raises: ValueError with a sentence.
    """
    if text.startswith("/"):
        raise ValueError("Begin the path at the workspace's root, without a slash.")
    parts = [part for part in text.split("/") if part]
    if not parts:
        raise ValueError("Write a path.")
    if any(part in (".", "..") for part in parts):
        raise ValueError("The path must not contain “.” or “..” as a directory.")
    if "\0" in text:
        raise ValueError("The path must not contain a null character.")
    path = "/".join(parts)
    if len(os.fsencode(as_named(path))) > LONGEST_PATH:
        raise ValueError(f"A path has at most {LONGEST_PATH:,} bytes.")
    return path
