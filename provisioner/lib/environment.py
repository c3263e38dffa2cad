"""Reading settings: what is malformed stops the process with one sentence."""

from __future__ import annotations

import builtins  # methods below have the names of types
import re
from collections.abc import Collection
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import environ
from django.core.exceptions import ImproperlyConfigured

_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off", ""}


class UnreadableFile(ImproperlyConfigured, OSError):
    """A file that is named for a secret cannot be read."""


class Environment(environ.FileAwareEnv):  # type: ignore[misc]  # it has no types
    """The environment, and the files that it names.

    Each method raises ImproperlyConfigured, with a sentence that names the variable.
    """

    def get_value(self, var: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().get_value(var, *args, **kwargs)
        except OSError as error:
            why = f"{var}_FILE: {error.filename} cannot be read: {error.strerror}."
            raise UnreadableFile(why) from error
        except UnicodeDecodeError as error:
            raise ImproperlyConfigured(
                f"{var}_FILE names a file that is not UTF-8 text."
            ) from error

    def bool(self, var: str, default: builtins.bool) -> builtins.bool:
        text = self._text(var, default=default).lower()
        if text not in _TRUE | _FALSE:
            raise ImproperlyConfigured(
                f"{var} has to be true or false, but is “{text}”."
            )
        return text in _TRUE

    def int(
        self, var: str, default: builtins.int, *, least: builtins.int = 0
    ) -> builtins.int:
        """Return a whole number, not below `least`."""
        text = self._text(var, default=default)
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
            raise ImproperlyConfigured(
                f"{var} has to be a whole number, but is “{text}”."
            )
        if builtins.int(text) < least:
            raise ImproperlyConfigured(
                f"{var} has to be at least {least}, and is {text}."
            )
        return builtins.int(text)

    def float(
        self, var: str, default: builtins.float, *, least: builtins.float = 0
    ) -> builtins.float:
        """Return a number, not below `least`."""
        text = self._text(var, default=default)
        if not re.fullmatch(r"[+-]?[0-9]{1,18}(\.[0-9]+)?", text):
            raise ImproperlyConfigured(f"{var} has to be a number, but is “{text}”.")
        if builtins.float(text) < least:
            raise ImproperlyConfigured(
                f"{var} has to be at least {least:g}, and is {text}."
            )
        return builtins.float(text)

    def choice(self, var: str, default: str, *, among: Collection[str]) -> str:
        text = self._text(var, default=default)
        if text not in among:
            raise ImproperlyConfigured(
                f"{var} has to be one of {', '.join(among)}, and is “{text}”."
            )
        return text

    def networks(self, var: str) -> list[str]:
        """Return networks such as 10.20.0.0/16, and addresses."""
        texts = [text.strip() for text in self.list(var, default=[])]
        for text in texts:
            try:
                ip_network(text)
            except ValueError as error:
                raise ImproperlyConfigured(
                    f"{var} has to be networks such as 10.20.0.0/16, and {error}."
                ) from error
        return texts

    def zone(self, var: str, default: str) -> str:
        text = self._text(var, default=default)
        try:
            ZoneInfo(text)
        except (ValueError, OSError, KeyError) as error:  # what it says of odd names
            raise ImproperlyConfigured(
                f"{var} has to be a time zone such as Europe/Berlin, and is “{text}”."
            ) from error
        return text

    def address(self, var: str, default: str) -> str:
        """Return the address of pages, without a path that ends with a slash."""
        text = self._text(var, default=default)
        if urlsplit(text).scheme not in ("http", "https") or not urlsplit(text).netloc:
            raise ImproperlyConfigured(
                f"{var} has to be as https://cloneyard.example.com, and is “{text}”."
            )
        return text

    def _text(self, var: str, *, default: object) -> str:
        return str(self.str(var, default=str(default))).strip()


def database_of(url: str) -> dict[str, Any]:
    """Return a database as Django describes it.

    Raises: ImproperlyConfigured, without the URL, which has a password.
    """
    wanted = "DATABASE_URL has to be as postgres://user:password@host:5432/name"
    if not url.startswith(("postgres://", "postgresql://")):
        raise ImproperlyConfigured(f"{wanted}.")
    try:
        found: dict[str, Any] = environ.Env.db_url_config(url)
    except (ValueError, ImproperlyConfigured):
        # What is wrong is said with a part of the URL, which may be a password's.
        raise ImproperlyConfigured(
            f"{wanted}; a character such as / or # in the password is written as %2F "
            "or %23."
        ) from None
    if not found["NAME"]:
        raise ImproperlyConfigured(f"{wanted}, and has no name of a database.")
    return found


def mail_of(url: str) -> dict[str, Any]:
    """Return Django's settings of mail.

    Raises: ImproperlyConfigured, without the URL, which has a password.
    """
    try:
        found: dict[str, Any] = environ.Env.email_url_config(url)
    except (ValueError, ImproperlyConfigured):
        raise ImproperlyConfigured(
            "EMAIL_URL has to be as smtp+tls://user:password@mail.example.com:587."
        ) from None
    return found
