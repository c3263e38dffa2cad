"""Reading settings: what is malformed stops the process with one sentence."""

from __future__ import annotations

import builtins  # methods below have the names of types
import re
import shlex
import ssl
from collections.abc import Collection
from email.utils import parseaddr
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit
from zoneinfo import ZoneInfo

import environ
from django.core.exceptions import ImproperlyConfigured

_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}
# What is counted here is far below; more would not fit where it is used.
HIGHEST = 10**9
_HOST = re.compile(
    r"[A-Za-z0-9_][A-Za-z0-9_.-]*|\[?[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*\]?"
)


class UnreadableFile(ImproperlyConfigured, OSError):
    """A file that is named for a secret cannot be read."""


class Environment(environ.FileAwareEnv):  # type: ignore[misc]  # it has no types
    """The environment, and the files that it names.

    An empty value is the default, as if the variable were not set. Each method raises
    ImproperlyConfigured, with a sentence that names the variable.
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
        text = self.text(var, default=default).lower()
        if text not in _TRUE | _FALSE:
            raise ImproperlyConfigured(
                f"{var} has to be true or false, but is “{text}”."
            )
        return text in _TRUE

    def int(
        self,
        var: str,
        default: builtins.int,
        *,
        least: builtins.int = 0,
        most: builtins.int = HIGHEST,
    ) -> builtins.int:
        """Return a whole number, neither below `least` nor above `most`."""
        text = self.text(var, default=default)
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
            raise ImproperlyConfigured(
                f"{var} has to be a whole number, but is “{text}”."
            )
        _check_bounds(var, text, least=least, most=most)
        return builtins.int(text)

    def float(
        self,
        var: str,
        default: builtins.float,
        *,
        least: builtins.float = 0,
        most: builtins.float = HIGHEST,
    ) -> builtins.float:
        """Return a number, neither below `least` nor above `most`."""
        text = self.text(var, default=default)
        if not re.fullmatch(r"[+-]?[0-9]{1,18}(\.[0-9]+)?", text):
            raise ImproperlyConfigured(f"{var} has to be a number, but is “{text}”.")
        _check_bounds(var, text, least=least, most=most)
        return builtins.float(text)

    def choice(self, var: str, default: str, *, among: Collection[str]) -> str:
        text = self.text(var, default=default)
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
        text = self.text(var, default=default)
        try:
            ZoneInfo(text)
        except (ValueError, OSError, KeyError) as error:  # what it says of odd names
            raise ImproperlyConfigured(
                f"{var} has to be a time zone such as Europe/Berlin, and is “{text}”."
            ) from error
        return text

    def address(
        self, var: str, default: str, *, such_as: str = "https://cloneyard.example.com"
    ) -> str:
        """Return an address of http or https; "" only as the default."""
        text = self.text(var, default=default)
        if text and _web_address(text) is None:
            raise ImproperlyConfigured(
                f"{var} has to look like {such_as}, and is “{text}”."
            )
        return text

    def hosts(
        self,
        var: str,
        default: Collection[str] = (),
        *,
        patterns: builtins.bool = False,
    ) -> builtins.list[str]:
        """Return names and IP addresses of hosts; patterns are *, and .example.com."""
        texts = [text.strip() for text in self.list(var, default=[])] or [*default]
        for text in texts:
            is_pattern = patterns and (text == "*" or _is_host(text.removeprefix(".")))
            if not is_pattern and not _is_host(text):
                raise ImproperlyConfigured(
                    f"{var} has to be names of hosts such as cloneyard.example.com, "
                    f"without https:// and without a port, and has “{text}”."
                )
        return texts

    def origins(self, var: str) -> builtins.list[str]:
        """Return origins: scheme, host and port, as browsers send them."""
        texts = [text.strip() for text in self.list(var, default=[])]
        for text in texts:
            parts = _web_address(text)
            if parts is None or text != f"{parts.scheme}://{parts.netloc}":
                raise ImproperlyConfigured(
                    f"{var} has to be origins such as https://cloneyard.example.com, "
                    f"and has “{text}”."
                )
        return texts

    def command(self, var: str, default: str) -> builtins.list[str]:
        """Return the words of a command, as a shell would split them."""
        text = self.text(var, default=default)
        try:
            return shlex.split(text)
        except ValueError as error:
            raise ImproperlyConfigured(
                f"{var} has to be a command such as {default}: {error} in “{text}”."
            ) from error

    def path(self, var: str) -> str:
        """Return an absolute path, "" for none."""
        return _absolute(var, self.text(var, default=""))

    def paths(self, var: str) -> builtins.list[str]:
        """Return absolute paths."""
        return [_absolute(var, text.strip()) for text in self.list(var, default=[])]

    def directory(self, var: str, default: Path) -> Path:
        """Return a directory, which need not be there yet."""
        text = self.text(var, default="")
        path = Path(text or default).resolve()
        in_the_way = [each for each in (path, *path.parents) if each.is_file()]
        if text and in_the_way:
            raise ImproperlyConfigured(
                f"{var} has to be a directory, but {in_the_way[0]} is a file."
            )
        return path

    def certificates(self, var: str) -> str:
        """Return the path of a file with CA certificates, "" for none."""
        text = self.text(var, default="")
        try:
            if text:
                ssl.create_default_context(cafile=text)
        except OSError as error:
            is_no_pem = isinstance(error, ssl.SSLError)
            why = "it has none" if is_no_pem else error.strerror
            raise ImproperlyConfigured(
                f"{var} has to be a file of CA certificates (PEM), and is “{text}”: "
                f"{why}."
            ) from error
        return text

    def mail_sender(self, var: str, default: str) -> str:
        """Return a mail address, which may have a name before it."""
        text = self.text(var, default=default)
        local, at, domain = parseaddr(text)[1].partition("@")
        if not (local and at and domain) or "@" in domain or not text.isprintable():
            raise ImproperlyConfigured(
                f"{var} has to be a mail address such as cloneyard@example.com, but is "
                f"“{text}”."
            )
        return text

    def text(self, var: str, *, default: object) -> str:
        return str(self.str(var, default="")).strip() or str(default)


def _check_bounds(var: str, text: str, *, least: float, most: float) -> None:
    if float(text) < least:
        raise ImproperlyConfigured(
            f"{var} has to be at least {least:,}, and is {text}."
        )
    if float(text) > most:
        raise ImproperlyConfigured(f"{var} has to be at most {most:,}, and is {text}.")


def _absolute(var: str, text: str) -> str:
    if text and not text.startswith("/"):
        raise ImproperlyConfigured(
            f"{var} has to be a path that begins with /, and is “{text}”."
        )
    return text


def _is_host(text: str) -> bool:
    return _HOST.fullmatch(text) is not None


def _web_address(text: str) -> SplitResult | None:
    """Return the parts of an address of http or https, None for anything else."""
    try:
        parts = urlsplit(text)
        is_one = (
            parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        )
    except ValueError:  # such as a port that is no number
        return None
    return parts if is_one else None


def database_of(url: str) -> dict[str, Any]:
    """Return a database as Django describes it.

    Raises: ImproperlyConfigured, without the URL, which has a password.
    """
    wanted = "DATABASE_URL has to look like postgres://user:password@host:5432/name"
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
            "EMAIL_URL has to look like smtp+tls://user:password@mail.example.com:587."
        ) from None
    return found
