#!/usr/bin/env python3
"""Built Perforce workspaces from the command line: one file, Python 3.8 or newer.

Get it from the Cloneyard server itself, which fills in its address:

    curl -fsSo cloneyard https://cloneyard.example.com/cli
    chmod +x cloneyard
    ./cloneyard login

Then

    eval "$(cloneyard new main --export)"

creates a workspace from the template “main”, sets P4CLIENT and changes directory.

environment:
  CLONEYARD_SERVER   the server's address, where --server does not give it
  CLONEYARD_TOKEN    an API token, used instead of the one that “login” stores
  CLONEYARD_CA_FILE  certificates to trust instead of the system's (PEM)

exit codes:
  0  done
  1  it failed at the server; standard error says why
  2  wrong usage
  3  refused: not possible now, or not allowed
  4  no such workspace, template, snapshot, mirror, sandbox or server
  5  the server cannot be reached, or is too busy
  6  not signed in
  7  still running after --timeout; the server continues
  130  interrupted; the server continues
"""

from __future__ import annotations

import argparse
import base64
import datetime as dt
import email.utils
import getpass
import hashlib
import http.client
import ipaddress
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import stat
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
import webbrowser
from pathlib import Path
from typing import IO, Any, Callable, Dict, NoReturn
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

# Whoever serves this file fills in these two.
SERVER = ""
VERSION = ""

DONE, FAILED, USAGE, REFUSED, NOT_FOUND, NOT_REACHED, NOT_SIGNED_IN, UNDER_WAY = range(
    8
)
INTERRUPTED = 130

HOLD_SECONDS = 30  # below what proxies usually allow an answer
POLL_EVERY_SECONDS = 2  # where somebody watches
ANSWER_WITHIN_SECONDS = 30
COMPLETE_WITHIN_SECONDS = 3
UPLOAD_ANSWER_WITHIN_SECONDS = 300
BLOCK_BYTES = 1024 * 1024
LONGEST_PAUSE_SECONDS = 10.0
MOVING = {"provisioning", "retiring", "restoring", "purging"}
PUT_AWAY = {"trashed", "purging", "retired"}
VERDICTS = {"good", "bad", "skip", "again"}
FINDINGS = {
    "opened": "Opened",
    "shelved": "Shelved",
    "pending": "Pending changes without files",
    "changed": "Changed, but not opened",
    "missing": "Missing",
    "untracked": "Untracked",
    "unchecked": "Could not be compared",
}
# What sets colors is kept; whatever else a terminal would obey goes.
COLOR_OR_CONTROL = re.compile(
    r"(\x1b\[[0-9;]*m)|\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
UNITS = {"d": 86400, "h": 3600, "min": 60, "m": 60, "s": 1}

Json = Dict[str, Any]


class Stop(Exception):
    """Why this run ends, for people, with its exit code and what --json prints."""

    def __init__(self, exit_code: int, sentence: str, body: Json | None = None):
        super().__init__(sentence)
        self.exit_code = exit_code
        self.body = body or {"detail": sentence, "code": WORDS[exit_code]}
        self.was_repeated = False


class Later(Stop):
    """No answer yet; `seconds` is the server's Retry-After, or None."""

    def __init__(
        self, sentence: str, *, body: Json | None = None, seconds: float | None = None
    ):
        super().__init__(NOT_REACHED, sentence, body)
        self.seconds = seconds


# What --json says where the server did not say anything.
WORDS = {
    FAILED: "failed",
    USAGE: "usage",
    REFUSED: "refused",
    NOT_FOUND: "not_found",
    NOT_REACHED: "not_reached",
    NOT_SIGNED_IN: "not_signed_in",
    UNDER_WAY: "under_way",
    INTERRUPTED: "interrupted",
}


# --- words in and out


def span(text: str) -> int:
    """Return the seconds of “8h”, “90min” or “1d 12h”.

    Raises: argparse.ArgumentTypeError if it is not numbers with units.
    """
    parts = re.findall(r"(\d{1,9})\s*(d|h|min|m|s)\s*", text.strip(), re.ASCII)
    if not parts or "".join(n + unit for n, unit in parts) != "".join(text.split()):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a span of time: write 8h, 90min or 1d12h"
        )
    return sum(int(number) * UNITS[unit] for number, unit in parts)


def word(text: str) -> str:
    """Return an argument that can be sent.

    Raises: argparse.ArgumentTypeError if it is empty or not UTF-8.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("not UTF-8") from None
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return text


def request_key(text: str) -> str:
    """Return an argument that can be an Idempotency-Key.

    Raises: argparse.ArgumentTypeError.
    """
    if not re.fullmatch(r"[\x20-\x7e]{1,200}", text):
        raise argparse.ArgumentTypeError("1 to 200 printable ASCII characters")
    return text


def id_or_name(text: str) -> Any:
    """Return an id or name as the API takes it: a number is an id, a text a name."""
    return int(text) if text.isascii() and text.isdecimal() else text


def plain(text: object) -> str:
    """Return text that is safe on a terminal: file names may contain anything."""
    return "".join(c if c.isprintable() else "?" for c in str(text))


def local_time(iso: str | None) -> str:
    """Return a moment in the time of this machine, with its zone; "" for none."""
    if not iso:
        return ""
    moment = dt.datetime.fromisoformat(iso.replace("Z", "+00:00")).astimezone()
    zone = moment.strftime("%z")
    return f"{moment:%Y-%m-%d %H:%M} {zone[:3]}:{zone[3:5]}"


def shell_lines(workspace: Json) -> str:
    """Return the lines for a POSIX shell to evaluate to work in a workspace.

    Raises: Stop if it is not ready, so that there is nothing to work in.
    """
    if workspace["state"] != "ready":
        raise Stop(REFUSED, f"{workspace['name']} is {workspace['state']}, not ready.")
    client, p4port = workspace["client"], workspace["p4port"]
    # One for builds has no client; the one from before must not count in it.
    lines = [f"export P4CLIENT={shlex.quote(client)}" if client else "unset P4CLIENT"]
    if p4port:
        lines.append(f"export P4PORT={shlex.quote(p4port)}")
    return "; ".join([*lines, f"cd {shlex.quote(workspace['path'])}"])


def tell(sentence: str) -> None:
    """Print a message on standard error; standard output is for results."""
    print(f"cloneyard: {plain(sentence)}", file=sys.stderr, flush=True)


# --- where the server is, and the token for it


def normal_address(address: str) -> str:
    """Return a server's address in the form under which its login is stored.

    Raises: Stop if it is no address, or would send secrets unencrypted.
    """
    try:
        parts = urlsplit(address.strip())
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise Stop(USAGE, f"{address!r} is no address: {error}.") from None
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc:
        raise Stop(USAGE, f"Give the server as https://HOST, not {address!r}.")
    if parts.scheme == "http" and not is_this_machine(host):
        raise Stop(USAGE, f"{host} has to be reached by https: a token goes there.")
    host = f"[{host}]" if ":" in host else host
    netloc = host if port is None else f"{host}:{port}"
    return f"{parts.scheme}://{netloc}{parts.path.rstrip('/')}"


def is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def config_directory() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "cloneyard"


def login_path(address: str) -> Path:
    return config_directory() / f"{quote(address, safe='')}.json"


def chosen_address(given: str | None) -> str:
    """Return the address of the server to use.

    Raises: Stop if nothing says which.
    """
    named = given or os.environ.get("CLONEYARD_SERVER") or SERVER
    if named:
        return normal_address(named)
    kept = list(config_directory().glob("*.json"))
    if len(kept) == 1:
        return str(read_json(kept[0])["server"])
    raise Stop(USAGE, "Which server? Give --server, or set CLONEYARD_SERVER.")


def read_json(path: Path) -> Json:
    """Read a stored login.

    Raises: Stop if others can read the file, too, or it is damaged.
    """
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise Stop(
                NOT_SIGNED_IN,
                f"Others may read {path}, so its token is not used: revoke it on the "
                "page “API tokens”, remove the file and sign in again.",
            )
        kept: Json = json.loads(path.read_text())
        return {"server": kept["server"], "token": kept["token"], "user": kept["user"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Stop(
            NOT_SIGNED_IN, f"{path} cannot be used ({error}): sign in again."
        ) from None


def keep_login(address: str, *, token: str, user: str) -> Path:
    """Save a token readable by its owner only, replacing an earlier one."""
    path = login_path(address)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # mkstemp makes files that only their owner can read.
    handle, temporary = tempfile.mkstemp(dir=str(path.parent), prefix=".login-")
    with os.fdopen(handle, "w") as file:
        json.dump({"server": address, "token": token, "user": user}, file)
    os.replace(temporary, path)
    return path


def clean_token(text: str) -> str:
    token = text.strip()
    if not re.fullmatch(r"[!-~]+", token):
        raise Stop(USAGE, "That is not an API token.")
    return token


def token_for(address: str) -> str:
    """Return the token of the environment, or the stored one.

    Raises: Stop if there is none.
    """
    if os.environ.get("CLONEYARD_TOKEN"):
        return clean_token(os.environ["CLONEYARD_TOKEN"])
    path = login_path(address)
    if not path.exists():
        raise Stop(
            NOT_SIGNED_IN,
            f"Nobody is signed in to {address}: call “cloneyard login”, or set "
            "CLONEYARD_TOKEN.",
        )
    return str(read_json(path)["token"])


# --- asking the server


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: a token goes to the named server, and to no other."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class Server:
    """The API of one server. Requests are repeated for `patience` seconds."""

    def __init__(
        self, address: str, *, authorization: str, ca_file: str, patience: float
    ) -> None:
        self.address = address
        self.patience = patience
        self.answers_within = ANSWER_WITHIN_SECONDS
        self._authorization = authorization
        self._ask_again_seconds = 0.0
        try:
            context = ssl.create_default_context(cafile=ca_file or None)
        except OSError as error:
            raise Stop(USAGE, f"{ca_file} has no certificates: {error}.") from None
        self._opener = urllib.request.build_opener(
            NoRedirect, urllib.request.HTTPSHandler(context=context)
        )

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Json | None = None,
        body: Json | None = None,
        key: str = "",
        is_repeatable: bool = True,
    ) -> Json:
        """Return the answer; repeat the request if there was none.

        Raises: Stop with the server's sentence; `was_repeated` says that an earlier try
        may have succeeded.
        """
        url = f"{self.address}/api/v1/{path}"
        url += f"?{urlencode(query)}" if query else ""
        data = None if body is None else json.dumps(body).encode()
        held = (query or {}).get("wait", 0)
        ends, pause, tries = time.monotonic() + self.patience, 1.0, 0
        while True:
            tries += 1
            request = urllib.request.Request(  # noqa: S310 - http(s), see normal_address
                url, data=data, headers=self._headers(data, key), method=method
            )
            try:
                body = self._once(request, timeout=self.answers_within + held)
                # Held at our end, where the server holds too many answers already.
                time.sleep(min(held, self._ask_again_seconds))
                return body
            except Later as later:
                seconds = pause if later.seconds is None else later.seconds
                if not is_repeatable or time.monotonic() + seconds > ends:
                    raise
                tell(f"{later} Trying again in {seconds:g} s.")
                time.sleep(seconds)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            except Stop as stop:
                stop.was_repeated = tries > 1
                raise

    def download(self, path: str, into: IO[bytes]) -> str:
        """Write the answer for a path into a file; return its SHA-256.

        Raises: Stop, also if it is incomplete.
        """
        request = urllib.request.Request(  # noqa: S310 - http(s), see normal_address
            f"{self.address}/api/v1/{path}", headers=self._headers(None, "")
        )
        digest = hashlib.sha256()
        try:
            # A host has to read it first, and another one where that was killed.
            with self._opener.open(request, timeout=60) as answer:
                expected = int(answer.headers["Content-Length"])
                while block := answer.read(BLOCK_BYTES):
                    digest.update(block)
                    into.write(block)
                    expected -= len(block)
        except urllib.error.HTTPError as error:
            raw = self._read_refusal(error)
            self._refuse(error.code, error.headers, as_json(raw))
        except (ConnectionError, socket.timeout, http.client.HTTPException) as error:
            self._give_up(error)
        except urllib.error.URLError as error:
            self._give_up(error.reason)
        if expected:
            raise Later("The download was broken off. Try again.")
        return digest.hexdigest()

    def upload(self, path: str, query: Json, file: IO[bytes]) -> Json:
        """Send a file as the body, piece by piece; return the answer.

        Raises: Stop.
        """
        size = os.fstat(file.fileno()).st_size
        headers = {
            **self._headers(None, ""),
            "Content-Type": "application/octet-stream",
            "Content-Length": str(size),
        }
        request = urllib.request.Request(  # noqa: S310 - http(s), see normal_address
            f"{self.address}/api/v1/{path}?{urlencode(query)}",
            data=file,
            headers=headers,
            method="POST",
        )
        return self._once(request, timeout=UPLOAD_ANSWER_WITHIN_SECONDS)

    def _headers(self, data: bytes | None, key: str) -> dict[str, str]:
        headers = {
            "Accept": "application/json",
            "Authorization": self._authorization,
            "User-Agent": f"cloneyard-cli/{VERSION or 'unserved'}",
        }
        if parent := os.environ.get("TRACEPARENT"):
            headers["traceparent"] = parent
        if data is not None:
            headers["Content-Type"] = "application/json"
        if key:
            headers["Idempotency-Key"] = key
        return headers

    def _once(self, request: urllib.request.Request, *, timeout: float) -> Json:
        try:
            with self._opener.open(request, timeout=timeout) as answer:
                status, raw = answer.status, answer.read()
                self._ask_again_seconds = (
                    seconds_to_wait(answer.headers.get("Retry-After")) or 0.0
                )
        except urllib.error.HTTPError as error:
            status, raw = error.code, self._read_refusal(error)
            self._refuse(status, error.headers, as_json(raw))
        except (OSError, http.client.HTTPException) as error:
            self._give_up(getattr(error, "reason", error))
        body = {} if status == 204 else as_json(raw)
        if body is None:
            raise self._stranger(status)
        return body

    def _read_refusal(self, error: urllib.error.HTTPError) -> bytes:
        try:
            with error:
                return error.read()
        except (OSError, http.client.HTTPException) as broken:
            self._give_up(broken)

    def _refuse(self, status: int, headers: Any, body: Json | None) -> NoReturn:
        """Raise the error for an answer other than 2xx."""
        if 300 <= status < 400:
            elsewhere = headers.get("Location", "another address")
            raise Stop(
                NOT_REACHED,
                f"{self.address} refers to {elsewhere}: give --server as it is there.",
            )
        detail = str((body or {}).get("detail", ""))
        if status in (429, 502, 503, 504):
            seconds = seconds_to_wait(headers.get("Retry-After"))
            sentence = detail or f"{self.address} answers {status} for now."
            raise Later(sentence, body=body, seconds=seconds)
        if body is None or not detail:
            raise self._stranger(status)
        if status == 401:
            raise Stop(NOT_SIGNED_IN, detail, body)
        if status == 404:
            raise Stop(NOT_FOUND, detail, body)
        is_refusal = status < 500 and body.get("code") != "workspace_failed"
        raise Stop(REFUSED if is_refusal else FAILED, detail, body)

    def _stranger(self, status: int) -> Stop:
        return Stop(
            NOT_REACHED, f"{self.address} answers {status}, but not as Cloneyard does."
        )

    def _give_up(self, reason: object) -> NoReturn:
        """Raise the error for a missing or incomplete answer."""
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise Stop(
                NOT_REACHED,
                f"The certificate of {self.address} cannot be verified "
                f"({reason.verify_message}). Give its authority with --ca-file.",
            )
        why = str(reason) or type(reason).__name__
        sentence = f"{self.address} does not answer ({why})."
        if isinstance(reason, socket.gaierror) and reason.errno == socket.EAI_NONAME:
            raise Stop(NOT_REACHED, sentence)
        raise Later(sentence)

    # What commands have in common.

    def find(self, text: str) -> Json:
        """Return the workspace with this id or name; of several, the one in use.

        Raises: Stop if there is none, or more than one.
        """
        wanted = id_or_name(text)
        if isinstance(wanted, int):
            return self.look(wanted)
        found = self.ask("GET", "workspaces", query={"name": wanted})["results"]
        living = [w for w in found if w["state"] != "retired"] or found[:1]
        if not living:
            raise Stop(NOT_FOUND, f"There is no workspace “{wanted}” for you to see.")
        if len(living) > 1:
            each = " or ".join(f"{w['id']} at {w['site']}" for w in living)
            raise Stop(
                REFUSED, f"There is more than one “{wanted}”: give the id, {each}."
            )
        return dict(living[0])

    def look(self, workspace_id: int, *, wait: int = 0) -> Json:
        query = {"wait": wait} if wait else None
        return self.ask("GET", f"workspaces/{workspace_id}", query=query)

    def change(
        self, workspace: Json, method: str, verb: str = "", *, done: str, **asked: Any
    ) -> Json:
        """Request a change; `done` is the refusal if an earlier try has succeeded."""
        try:
            return self.ask(method, f"workspaces/{workspace['id']}{verb}", **asked)
        except Stop as stop:
            if stop.was_repeated and stop.body.get("code") == done:
                return self.look(workspace["id"])
            raise

    def settle(self, workspace: Json, *, timeout: float) -> Json:
        """Wait until the operation has settled, and show its steps.

        Raises: Stop when the time is over, or somebody interrupts; the server
        continues.
        """
        line, ends = ProgressLine(), time.monotonic() + timeout
        again = f"“cloneyard wait {workspace['name']}” looks again."
        try:
            while workspace["state"] in MOVING:
                left = ends - time.monotonic()
                if left <= 0:
                    sentence = f"{workspace['name']} is still {workspace['state']}."
                    raise Stop(UNDER_WAY, f"{sentence} {again}")
                line.show(workspace)
                workspace = self.look(workspace["id"], wait=line.hold(left))
        except KeyboardInterrupt:
            raise Stop(
                INTERRUPTED, f"Interrupted. The server continues: {again}"
            ) from None
        finally:
            line.clear()
        return workspace


def as_json(raw: bytes) -> Json | None:
    """Return a body's JSON object, None for anything else."""
    try:
        body = json.loads(raw)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def seconds_to_wait(header: str | None) -> float | None:
    """Return the seconds of Retry-After, which may be a date; None without one."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        moment = email.utils.parsedate_to_datetime(header)
    except (TypeError, ValueError):
        return None
    return max(0.0, moment.timestamp() - time.time())


class ProgressLine:
    """A progress line on a terminal; elsewhere, nothing."""

    def __init__(self) -> None:
        self.is_watched = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._began = time.monotonic()

    def hold(self, left: float) -> int:
        """Return for how many seconds the server may hold its answer."""
        hold = POLL_EVERY_SECONDS if self.is_watched else HOLD_SECONDS
        return max(1, min(hold, int(left)))

    def show(self, workspace: Json) -> None:
        self.say(f"{workspace['name']}: {where_it_is(workspace)}")

    def say(self, text: str) -> None:
        if self.is_watched:
            text = f"{text}, {int(time.monotonic() - self._began)} s"
            columns = shutil.get_terminal_size().columns
            self._write(f"\r\x1b[K{plain(text)[: columns - 1]}")

    def clear(self) -> None:
        if self.is_watched:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def where_it_is(workspace: Json) -> str:
    """Return the running steps, and how many have ended."""
    operation = workspace["operation"]
    if operation is None:
        return str(workspace["state"])
    titles = [
        step["title"] + (" (trying again)" if step["state"] == "retrying" else "")
        for step in operation["current_steps"]
    ]
    counted = f"{operation['steps_done']} of {operation['steps_total']} steps"
    return f"{' + '.join(titles) or workspace['state']}, {counted}"


# --- what a run prints


def print_json(thing: object) -> None:
    print(json_text(thing, indent=2))


def json_text(thing: object, *, indent: int | None = None) -> str:
    """Return JSON that is safe on a terminal, with the same values."""
    said = json.dumps(thing, indent=indent, ensure_ascii=False)
    safe = (c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in said)
    return "".join(safe)


def print_workspace(workspace: Json) -> None:
    rows = {
        "name": workspace["name"],
        "id": workspace["id"],
        "state": workspace["state"],
        "why": workspace["status_message"],
        "step": where_it_is(workspace) if workspace["state"] in MOVING else "",
        "owner": workspace["owner"],
        "template": f"{workspace['template']} at change {workspace['change']}",
        "withdrawn": workspace["snapshot"]["withdraw_reason"],
        "purpose": workspace["purpose"],
        "path": workspace["path"],
        "client": workspace["client"],
        "P4PORT": workspace["p4port"],
        "start": workspace["start"]["sentence"],
        "lease": workspace["lease"]["sentence"],
    }
    print_rows(rows)


def print_rows(rows: Json) -> None:
    for title, value in rows.items():
        if value != "":
            print(f"{title:9} {plain(value)}")


def show_rows(
    args: argparse.Namespace,
    found: list[Json],
    heading: list[str],
    row: Callable[[Json], list[Any]],
    *,
    nothing: str,
) -> None:
    """Print what was found as JSON or as a table; say so if there is nothing."""
    if args.json:
        print_json(found)
    elif found:
        print_table([heading, *map(row, found)])
    else:
        tell(nothing)


def show_thing(args: argparse.Namespace, thing: Json, sentence: str) -> None:
    """Print a thing as JSON, or what to say of it."""
    if args.json:
        print_json(thing)
    else:
        print(plain(sentence))


def given(**asked: Any) -> Json:
    """Return what was given: an option that was not is None."""
    return {name: value for name, value in asked.items() if value is not None}


def print_table(rows: list[list[Any]]) -> None:
    shown = [[plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown)]
    for row in shown:
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        print("  ".join(cells).rstrip())


def print_findings(findings: Json) -> None:
    """Print what a refused retirement found, on standard error."""
    counts = findings.get("counts", {})
    for kind, title in FINDINGS.items():
        found = findings.get(kind, [])
        count = counts.get(kind, {}).get("count", len(found))
        if found:
            print(f"{title} ({count}):", file=sys.stderr)
        for thing in found:
            print(f"  {plain(finding_text(thing))}", file=sys.stderr)
        if count > len(found) > 0:
            print(f"  … and {count - len(found)} more", file=sys.stderr)


def finding_text(thing: Json) -> str:
    if "reason" in thing:
        return f"{thing['path']}: {thing['reason']}"
    if "description" in thing:
        return f"change {thing['change']}: {thing['description'].strip()}"
    where = thing.get("path") or thing.get("depot_file", "")
    return f"{where} ({thing['action']})" if "action" in thing else str(where)


def show(args: argparse.Namespace, workspace: Json) -> None:
    """Print a workspace in the requested format."""
    if args.json:
        print_json(workspace)
    elif getattr(args, "export", False):
        print(shell_lines(workspace))
    else:
        print_workspace(workspace)


# --- commands


def server_of(args: argparse.Namespace) -> Server:
    address = chosen_address(args.server)
    return open_server(args, address, f"Bearer {token_for(address)}")


def open_server(args: argparse.Namespace, address: str, authorization: str) -> Server:
    ca_file = args.ca_file or os.environ.get("CLONEYARD_CA_FILE", "")
    return Server(
        address, authorization=authorization, ca_file=ca_file, patience=args.patience
    )


def run_login(args: argparse.Namespace) -> None:
    address = chosen_address(args.server)
    if args.token:
        token = clean_token(os.environ.get("CLONEYARD_TOKEN") or read_secret("Token: "))
        server = open_server(args, address, f"Bearer {token}")
        # Anybody's first page has a token of theirs: the one that asks.
        user = server.ask("GET", "tokens")["results"][0]["owner"]
    else:
        pair = ":".join(ask_for_password(args.user, address=address))
        basic = base64.b64encode(pair.encode()).decode()
        server = open_server(args, address, f"Basic {basic}")
        body = {"name": f"cloneyard on {socket.gethostname()}"[:100]}
        made = server.ask("POST", "tokens", body=body, is_repeatable=False)
        token, user = made["token"], made["owner"]
    path = keep_login(address, token=token, user=user)
    kept = {"server": address, "user": user, "kept_in": str(path)}
    show_thing(args, kept, f"Signed in to {address} as {user}.")


def read_secret(prompt: str) -> str:
    """Return a line typed without echo, or one from standard input."""
    if sys.stdin.isatty():
        return getpass.getpass(prompt)
    return sys.stdin.readline()


def ask_for_password(user: str | None, *, address: str) -> list[str]:
    if not sys.stdin.isatty():
        raise Stop(
            USAGE,
            "A password is asked for on a terminal. Elsewhere give a token: "
            "“cloneyard login --token” reads it from standard input.",
        )
    if user is None:
        print(f"User at {address}: ", end="", file=sys.stderr, flush=True)
        user = sys.stdin.readline().strip()
    if not user or ":" in user:
        raise Stop(USAGE, "A username is needed, without a colon.")
    return [user, getpass.getpass("Password: ")]


def run_new(args: argparse.Namespace) -> None:
    server = server_of(args)
    body = given(
        template=id_or_name(args.template),
        site=args.site,
        name=args.name,
        purpose=args.purpose,
        quality=args.quality,
        snapshot=args.snapshot and id_or_name(args.snapshot),
        lease=args.lease,
    )
    # With its key the request is the same one, however often it is sent.
    key = args.key or str(uuid.uuid4())
    workspace = server.ask("POST", "workspaces", body=body, key=key)
    if args.wait is not False or args.export:
        workspace = server.settle(workspace, timeout=args.timeout)
        require(workspace, workspace["state"] == "ready")
    elif workspace["state"] in MOVING:
        tell(f"It is being created: “cloneyard wait {workspace['name']}” waits for it.")
    if args.export:
        tell(workspace["start"]["sentence"])  # a shell evaluates what is printed
    if workspace.get("site_because"):
        tell(workspace["site_because"])
    show(args, workspace)


def require(workspace: Json, is_as_wanted: bool) -> None:
    """Raise a Stop with the server's reason if something ended otherwise."""
    if not is_as_wanted:
        said = workspace["status_message"]
        sentence = f"{workspace['name']} is {workspace['state']}. {said}".strip()
        body = {"detail": sentence, "code": "failed", "workspace": workspace}
        raise Stop(FAILED, sentence, body)


def run_list(args: argparse.Namespace) -> None:
    server = server_of(args)
    query = given(limit=200, template=args.template, state=args.state)
    if not args.everybody:
        query["owner"] = args.owner or owner_of(server)
    if args.state is None and not args.all:
        query["retired"] = "false"
    found = all_pages(server, "workspaces", query)
    heading = ["ID", "NAME", "OWNER", "STATE", "TEMPLATE", "CHANGE", "ENDS", "PATH"]
    show_rows(args, found, heading, list_row, nothing="No workspaces.")


def all_pages(server: Server, path: str, query: Json) -> list[Json]:
    """Return the rows of a list, page after page."""
    found: list[Json] = []
    while query:
        page = server.ask("GET", path, query=query)
        found += page["results"]
        query = dict(parse_qsl(urlsplit(page["next"] or "").query))
    return found


def owner_of(server: Server) -> str:
    """Return the owner of the token, as the server says."""
    return str(server.ask("GET", "tokens", query={"limit": 1})["results"][0]["owner"])


def list_row(workspace: Json) -> list[Any]:
    kept = "kept" if workspace["lease"]["kept_because"] else "-"
    return [
        *(workspace["id"], workspace["name"], workspace["owner"], workspace["state"]),
        *(workspace["template"], workspace["change"]),
        local_time(workspace["lease"]["ends_at"]) or kept,
        workspace["path"],
    ]


def run_show(args: argparse.Namespace) -> None:
    show(args, server_of(args).find(args.workspace))


def run_wait(args: argparse.Namespace) -> None:
    server = server_of(args)
    workspace = server.settle(server.find(args.workspace), timeout=args.timeout)
    operation = workspace["operation"]
    # A check changes nothing, whatever becomes of it.
    if operation is not None and operation["kind"] != "check":
        if operation["state"] == "refused":
            raise_refusal(server, workspace)
        require(workspace, operation["state"] == "succeeded")
    require(workspace, workspace["state"] != "failed")
    show(args, workspace)


def run_extend(args: argparse.Namespace) -> None:
    server = server_of(args)
    workspace = server.find(args.workspace)
    body, done = given(seconds=args.span), "lease_not_longer"
    show(args, server.change(workspace, "POST", "/extend", done=done, body=body))


def run_retire(args: argparse.Namespace) -> None:
    server = server_of(args)
    workspace = server.find(args.workspace)
    query = {"unsubmitted": args.unsubmitted}
    workspace = server.change(
        workspace, "DELETE", done="workspace_retired", query=query
    )
    if args.wait is not False:
        workspace = server.settle(workspace, timeout=args.timeout)
        operation = workspace["operation"]
        if workspace["state"] == "ready" and operation["state"] == "refused":
            raise_refusal(server, workspace)
        require(workspace, workspace["state"] in PUT_AWAY)
    show_thing(args, workspace, retired_text(workspace))


def raise_refusal(server: Server, workspace: Json) -> NoReturn:
    """Show what stopped a retirement, and raise the Stop that says so."""
    operation = server.ask("GET", f"operations/{workspace['operation']['id']}")
    findings = operation["findings"] or {}
    print_findings(findings)
    name, sentence = workspace["name"], operation["status_message"]
    body = {
        "detail": sentence,
        "code": operation["status_code"],
        "workspace": workspace,
        "findings": findings,
    }
    choice = f"“cloneyard retire {name} --rescue” keeps it, --discard throws it away."
    if "unchecked" in findings:
        choice = f"“cloneyard retire {name} --discard” retires it without a check."
    raise Stop(REFUSED, f"{sentence} {choice}", body)


def retired_text(workspace: Json) -> str:
    name, state = workspace["name"], workspace["state"]
    if state == "trashed":
        until = local_time(workspace["purge_at"])
        return f"{name} is in the trash until {until}: “cloneyard restore {name}”."
    if state == "retiring":
        return f"{name} is being retired: “cloneyard wait {name}”."
    return f"{name} is gone."


def run_restore(args: argparse.Namespace) -> None:
    """Restore a workspace from the trash, or from its copy at another site."""
    server = server_of(args)
    workspace = server.find(args.workspace)
    if args.site is not None:
        workspace = restore_copy(server, args, workspace)
    elif args.name is not None or args.original_is_stopped:
        raise Stop(USAGE, "--name and --original-is-stopped need --site.")
    else:
        workspace = server.change(
            workspace, "POST", "/restore", done="nothing_to_restore", body={}
        )
    if args.wait is not False:
        workspace = server.settle(workspace, timeout=args.timeout)
        require(workspace, workspace["state"] == "ready")
    show(args, workspace)


def restore_copy(server: Server, args: argparse.Namespace, workspace: Json) -> Json:
    """Return the new workspace, made from the copy at a site.

    Raises: Stop if there is no copy, or it is refused.
    """
    body = given(
        site=copy_at(server, workspace, args.site)["site"],
        original_is_stopped=args.original_is_stopped,
        name=args.name,
    )
    where = f"workspaces/{workspace['id']}/restore-copy"
    return server.ask("POST", where, body=body)


def copies_of(server: Server, workspace: Json | None = None) -> list[Json]:
    """Return the copies at other sites, of one workspace or of all one may see."""
    found = all_pages(server, "workspace-copies", {"limit": 200})
    if workspace is None:
        return found
    return [each for each in found if each["workspace"] == workspace["id"]]


def copy_at(server: Server, workspace: Json, site: str) -> Json:
    """Return a workspace's copy at a site.

    Raises: Stop if there is none.
    """
    for copy in copies_of(server, workspace):
        if copy["site"] == site:
            return copy
    raise Stop(NOT_FOUND, f"{workspace['name']} has no copy at “{site}”.")


def run_copies(args: argparse.Namespace) -> None:
    server = server_of(args)
    workspace = None if args.workspace is None else server.find(args.workspace)
    found = copies_of(server, workspace)
    heading = ["WORKSPACE", "SITE", "STATE", "ARRIVED", "OBSTACLE"]
    show_rows(args, found, heading, copy_row, nothing="No copies.")


def copy_row(copy: Json) -> list[Any]:
    arrived = local_time(copy["last_arrived_at"]) or "-"
    return [copy["name"], copy["site"], copy["state"], arrived, copy["obstacle"]]


def run_copy(args: argparse.Namespace) -> None:
    """Transfer what changed in a workspace to its copy at a site."""
    server = server_of(args)
    workspace = server.find(args.workspace)
    copy = copy_at(server, workspace, args.site)
    operation = server.ask("POST", f"workspace-copies/{copy['id']}/transfer")
    there = (f"being copied to {args.site}", f"copied to {args.site}")
    follow_operation(server, args, operation, said=(f"{workspace['name']} is", *there))


def run_split(args: argparse.Namespace) -> None:
    """Split a workspace from its snapshot, preview that, or stop it."""
    server = server_of(args)
    workspace = server.find(args.workspace)
    where = f"workspaces/{workspace['id']}/split"
    if args.preview:
        print_split(args, workspace, server.ask("GET", where))
        return
    if args.stop:
        where, said = f"{where}/stop", ("being stopped", "stopped")
        subject = f"The split of {workspace['name']} is"
    else:
        said = ("being split", "independent of its snapshot")
        subject = f"{workspace['name']} is"
    operation = server.ask("POST", where)
    follow_operation(server, args, operation, said=(subject, *said))


def print_split(args: argparse.Namespace, workspace: Json, split: Json) -> None:
    if args.json:
        print_json(split)
        return
    if split["is_independent"]:
        print(f"{workspace['name']} is independent.")
        return
    known = ("copies_bytes", "room_bytes", "seconds")
    copied, room, seconds = ("?" if split[k] is None else split[k] for k in known)
    print_table(
        [
            ["SNAPSHOT", "COPIES BYTES", "ROOM BYTES", "SECONDS", "FREES SNAPSHOT"],
            [split["snapshot"], copied, room, seconds, split["is_pruned"]],
        ]
    )


def run_clone(args: argparse.Namespace) -> None:
    server = server_of(args)
    source = server.find(args.workspace)
    body = given(name=args.name, owner=args.owner, snapshot=args.snapshot)
    workspace = server.ask("POST", f"workspaces/{source['id']}/clone", body=body)
    if args.wait is not False:
        workspace = server.settle(workspace, timeout=args.timeout)
        require(workspace, workspace["state"] == "ready")
    show(args, workspace)


def snapshots_of(server: Server, workspace: Json) -> list[Json]:
    """Return the snapshots of a workspace, newest first."""
    return all_pages(server, f"workspaces/{workspace['id']}/snapshots", {"limit": 200})


def chosen_snapshot(server: Server, workspace: Json, wanted: int | None) -> int:
    """Return the id that was asked for, or that of the newest snapshot.

    Raises: Stop if there is none.
    """
    if wanted is not None:
        return wanted
    found = snapshots_of(server, workspace)
    if not found:
        raise Stop(NOT_FOUND, f"There is no snapshot of {workspace['name']}.")
    return int(found[0]["id"])


def run_workspace_snapshots(args: argparse.Namespace) -> None:
    server = server_of(args)
    found = snapshots_of(server, server.find(args.workspace))
    heading = ["ID", "TAKEN", "NAME"]
    show_rows(args, found, heading, taken_row, nothing="No snapshots.")


def taken_row(snapshot: Json) -> list[Any]:
    return [snapshot["id"], local_time(snapshot["taken_at"]), snapshot["name"]]


def run_compare(args: argparse.Namespace) -> None:
    """Print what was added (A), changed (M) and removed (D) since a snapshot."""
    server = server_of(args)
    workspace = server.find(args.workspace)
    body = {"snapshot": chosen_snapshot(server, workspace, args.snapshot)}
    where = f"workspaces/{workspace['id']}/snapshots/compare"
    operation = server.ask("POST", where, body=body)
    said = (f"{workspace['name']} is", "being compared", "compared")
    found = follow_operation(server, args, operation, said=said)["findings"]
    if args.json or not found:
        return
    for letter, kind in (("A", "added"), ("M", "changed"), ("D", "removed")):
        for path in found[kind]:
            print(f"{letter} {plain(path)}")
        more = found["counts"][kind] - len(found[kind])
        if more:
            tell(f"{more} more {kind} are not listed.")
    if not found["is_complete"]:
        tell("Not everything could be compared.")


def run_take_back(args: argparse.Namespace) -> None:
    """Take back a file or directory; say where newer content was kept.

    Raises: Stop if files could not be taken back.
    """
    server = server_of(args)
    workspace = server.find(args.workspace)
    body = {
        "snapshot": chosen_snapshot(server, workspace, args.snapshot),
        "path": args.path,
    }
    where = f"workspaces/{workspace['id']}/snapshots/take-back"
    operation = server.ask("POST", where, body=body)
    said = (f"{plain(args.path)} is", "being taken back", "taken back")
    found = follow_operation(server, args, operation, said=said)["findings"]
    if not found:
        return
    if not args.json:
        for _, name in found["kept"]:
            print(f"Newer content: {plain(name)}")
    for path, reason in found["failed"]:
        tell(f"{path}: {reason}")
    if found["failed_count"]:
        raise Stop(FAILED, f"Files not taken back: {found['failed_count']}")


def run_restore_snapshot(args: argparse.Namespace) -> None:
    """Restore a workspace to a snapshot in place; say what could not be.

    Raises: Stop if files could not be restored, or opened again.
    """
    server = server_of(args)
    workspace = server.find(args.workspace)
    where = f"workspaces/{workspace['id']}/snapshots/restore"
    operation = server.ask("POST", where, body={"snapshot": args.snapshot})
    said = (f"{workspace['name']} is", "being restored", "restored")
    found = follow_operation(server, args, operation, said=said)["findings"] or {}
    failed = [f"{path}: {reason}" for path, reason in found.get("failed", [])]
    failed += found.get("not_restored", [])
    for sentence in failed:
        tell(sentence)
    if failed:
        raise Stop(FAILED, "Not everything was restored or opened again.")


def run_rescue(args: argparse.Namespace) -> None:
    server = server_of(args)
    workspace = server.find(args.workspace)
    path = f"workspaces/{workspace['id']}/rescues"
    rescue = chosen_rescue(server.ask("GET", path)["results"], args.id, workspace)
    if args.output is not None:
        save_rescue(server, f"{path}/{rescue['id']}/archive", rescue, args.output)
        return
    entries: list[Json] = []
    query: Json | None = {} if rescue["has_archive"] else None
    while query is not None:
        page = server.ask("GET", f"{path}/{rescue['id']}/files", query=query)
        entries += page["entries"]
        start = page["next_start"]
        query = None if start is None else {"start": start}
    if args.json:
        print_json({**rescue, "entries": entries})
        return
    for shelf in rescue["shelves"]:
        print(f"p4 unshelve -s {shelf['change']}    # files: {shelf['files']}")
    if entries:
        print_table([["SIZE", "WAS", "PATH"], *map(entry_row, entries)])
        name = shlex.quote(workspace["name"])
        tell(f"“cloneyard rescue {name} -o FILE” downloads it.")


def chosen_rescue(rescues: list[Json], wanted: int | None, workspace: Json) -> Json:
    """Return the given rescue, by default the newest with an archive.

    Raises: Stop if there is none.
    """
    if wanted is not None:
        rescues = [rescue for rescue in rescues if rescue["id"] == wanted]
    for rescue in (*(r for r in rescues if r["has_archive"]), *rescues):
        return rescue
    raise Stop(NOT_FOUND, f"There is no rescue of {workspace['name']}.")


def entry_row(entry: Json) -> list[Any]:
    size = entry["size_bytes"]
    return ["-" if size is None else f"{size:,}", entry["kind"], entry["path"]]


def save_rescue(server: Server, path: str, rescue: Json, output: str) -> None:
    """Download an archive into a file that only its owner can read, and verify it.

    Raises: Stop if it is not what was rescued; no file is left then.
    """
    if output == "-":
        check_digest(server.download(path, sys.stdout.buffer), rescue)
        return
    where = Path(output)
    # mkstemp makes files that only their owner can read.
    handle, temporary = tempfile.mkstemp(dir=str(where.parent), prefix=".rescue-")
    try:
        with os.fdopen(handle, "wb") as file:
            check_digest(server.download(path, file), rescue)
        os.replace(temporary, where)
    except BaseException:
        os.unlink(temporary)
        raise
    tell(f"{where} has {rescue['archived_files']:,} files; its checksum matches.")


def check_digest(digest: str, rescue: Json) -> None:
    if digest != rescue["archive_sha256"]:
        raise Stop(FAILED, "The archive has changed: its checksum does not match.")


def run_bisect(args: argparse.Namespace) -> None:
    """Start, show or stop a bisection, or give a verdict."""
    server = server_of(args)
    if args.id is None:
        bisection = begin_bisection(server, args)
    else:
        bisection = steer_bisection(server, args)
    waits_by_default = args.what not in ("show", "stop")
    if waits_by_default if args.wait is None else args.wait:
        bisection = follow_bisection(server, bisection, timeout=args.timeout)
        require_found(bisection)
    if args.json:
        print_json(bisection)
    else:
        print_bisection(bisection)


def begin_bisection(server: Server, args: argparse.Namespace) -> Json:
    if args.good is None or args.bad is None:
        raise Stop(
            USAGE,
            "“cloneyard bisect TEMPLATE --good N --bad M” begins one; “cloneyard "
            "bisect good ID” says what the change is that is being tested.",
        )
    body = given(
        template=id_or_name(args.what),
        good=args.good,
        bad=args.bad,
        command=args.command,
        site=args.site,
    )
    return server.ask("POST", "bisections", body=body)


def steer_bisection(server: Server, args: argparse.Namespace) -> Json:
    """Change a bisection as requested, and return it."""
    if args.what not in {*VERDICTS, "stop", "show"}:
        raise Stop(USAGE, "Give good, bad, skip, again, stop or show before the id.")
    if args.good is not None or args.bad is not None or args.command:
        raise Stop(USAGE, "--good, --bad and --run only start a bisection.")
    where = f"bisections/{args.id}"
    if args.what == "stop":
        return server.ask("POST", f"{where}/stop", body={})
    bisection = server.ask("GET", where)
    if args.what == "show":
        return bisection
    if bisection["current"] is None:
        raise Stop(REFUSED, f"No change is being tested. {bisection['status_message']}")
    # With its number the verdict cannot reach the change that comes after.
    body = {"change": bisection["current"]["change"], "verdict": args.what}
    return server.ask(
        "POST", f"{where}/verdict", body=body, is_repeatable=args.what != "again"
    )


def follow_bisection(server: Server, bisection: Json, *, timeout: float) -> Json:
    """Wait until a bisection has ended, or waits for a verdict.

    Raises: Stop when the time is over, or somebody interrupts; it continues.
    """
    line, ends = ProgressLine(), time.monotonic() + timeout
    again = f"“cloneyard bisect show {bisection['id']} --wait” waits on."
    try:
        while bisection["state"] == "running" and not waits_for_verdict(bisection):
            left = ends - time.monotonic()
            if left <= 0:
                sentence = f"It is still running. {bisection['status_message']} {again}"
                raise Stop(UNDER_WAY, sentence)
            line.say(bisection["status_message"])
            where, query = f"bisections/{bisection['id']}", {"wait": line.hold(left)}
            bisection = server.ask("GET", where, query=query)
    except KeyboardInterrupt:
        raise Stop(INTERRUPTED, f"Interrupted. The server continues: {again}") from None
    finally:
        line.clear()
    return bisection


def waits_for_verdict(bisection: Json) -> bool:
    return bool(bisection["status_code"] == "waits_for_verdict")


def require_found(bisection: Json) -> None:
    """Raise a Stop if a bisection did not find the first bad change."""
    if bisection["state"] == "found":
        return
    sentence, code = bisection["status_message"], FAILED
    if bisection["state"] == "running":
        sentence = (
            f"{sentence} Look into {bisection['current']['path']}, then run “cloneyard "
            f"bisect good {bisection['id']}”, or with bad, skip or again."
        )
        code = UNDER_WAY
    body = {"detail": sentence, "code": WORDS[code], "bisection": bisection}
    raise Stop(code, sentence, body)


def print_bisection(bisection: Json) -> None:
    current = bisection["current"]
    rows = {
        "id": bisection["id"],
        "template": bisection["template"],
        "between": f"{bisection['good']} and {bisection['bad']}",
        "state": bisection["state"],
        "why": bisection["status_message"],
        "path": current["path"] if current else "",
    }
    print_rows(rows)
    for step in bisection["steps"]:
        verdict = step["verdict"] or step["workspace_state"]
        told = f"{step['change']} {verdict}. {step['reason']}".strip()
        print(f"{'step':9} {plain(told)}")


# --- templates and their snapshots


def find_template(server: Server, args: argparse.Namespace) -> Json:
    """Return the template with this id or name, archived or not.

    Raises: Stop if there is none, or more than one.
    """
    wanted = id_or_name(args.template)
    if isinstance(wanted, int):
        return server.ask("GET", f"templates/{wanted}")
    query = given(name=wanted, archived="all", site=args.site)
    found = server.ask("GET", "templates", query=query)["results"]
    if not found:
        raise Stop(NOT_FOUND, f"There is no template “{wanted}” for you to see.")
    if len(found) > 1:
        raise Stop(REFUSED, f"There is more than one “{wanted}”: give its --site.")
    return dict(found[0])


def run_templates(args: argparse.Namespace) -> None:
    query = given(limit=200, archived="only" if args.archived else None)
    found = all_pages(server_of(args), "templates", query)
    heading = ["ID", "NAME", "SITE", "STATE", "CHANGE", "OWNER", "TITLE"]
    show_rows(args, found, heading, template_row, nothing="No templates.")


def template_row(template: Json) -> list[Any]:
    default = template["snapshot"]
    return [
        *(template["id"], template["name"], template["site"]),
        "archived" if template["archived_at"] else template["state"],
        default["change"] if default else "-",
        *(template["owner"], template["title"]),
    ]


def run_template(args: argparse.Namespace) -> None:
    """Show or change a template."""
    server = server_of(args)
    has_value = args.what in ("rename", "owner")
    if has_value != (args.value is not None):
        how = "takes the new value" if has_value else "takes nothing more"
        raise Stop(USAGE, f"“cloneyard template {args.what} TEMPLATE” {how}.")
    template = find_template(server, args)
    where = f"templates/{template['id']}"
    if args.what == "needs":
        print_needs(args, server.ask("GET", f"{where}/needs"))
    elif args.what == "delete":
        delete_template(server, args, template)
    elif args.what == "rollback":
        body = given(build=args.build)
        show_snapshot(args, server.ask("POST", f"{where}/roll-back", body=body))
    else:
        if has_value:
            named = {"rename": "title", "owner": "owner"}[args.what]
            template = server.ask("PATCH", where, body={named: args.value})
        elif args.what != "show":
            body = {"reason": args.reason} if args.what == "archive" else {}
            template = server.ask("POST", f"{where}/{args.what}", body=body)
        show_template(args, template)


def show_template(args: argparse.Namespace, template: Json) -> None:
    if args.json:
        print_json(template)
        return
    default = template["snapshot"]
    rows = {
        "name": template["name"],
        "title": template["title"],
        "id": template["id"],
        "site": template["site"],
        "owner": template["owner"],
        "state": template["state"],
        "why": template["status_message"],
        "default": f"change {default['change']}" if default else "none",
        "archived": said_by(template, "archived", "archive_reason"),
        "refresh": template["refresh"]["sentence"],
    }
    print_rows(rows)


def said_by(thing: Json, verb: str, reason: str) -> str:
    """Return when, by whom and why something was done, or ""."""
    if not thing[f"{verb}_at"]:
        return ""
    said = f"{local_time(thing[f'{verb}_at'])} by {thing[f'{verb}_by']}"
    return f"{said}: {thing[reason]}" if thing[reason] else said


def print_needs(args: argparse.Namespace, needs: Json) -> None:
    """Print what needs a template, and refuse if something does."""
    if args.json:
        print_json(needs)
        return
    for heading, found in (
        ("needed by", needs["needed_by"]),
        ("goes too", needs["goes_with"]),
    ):
        for each in found:
            named = ", ".join(each["names"])
            print(f"{heading:9} {each['number']} {each['what']}: {plain(named)}")
    print(f"{'goes too':9} {needs['snapshots_count']} snapshots, volume and client")
    if needs["can_be_deleted"]:
        print("Nothing needs it: it can be deleted.")
    else:
        print("It cannot be deleted while something needs it.")


def delete_template(server: Server, args: argparse.Namespace, template: Json) -> None:
    """Delete a template that nothing needs, and wait until it is gone.

    Raises: Stop if it is needed, or its deletion failed.
    """
    operation = server.ask("DELETE", f"templates/{template['id']}")
    said = (f"{template['name']} is", "being deleted", "gone")
    follow_operation(server, args, operation, said=said)


def follow_operation(
    server: Server,
    args: argparse.Namespace,
    operation: Json,
    *,
    said: tuple[str, str, str],
) -> Json:
    """Wait until an operation has ended, unless --no-wait was given; return it.

    It is printed. `said` are the words for people: the subject with its verb, what is
    being done, and what came of it.

    Raises: Stop if it failed, or takes longer than --timeout.
    """
    subject, doing, done = said
    if args.wait is not False:
        operation = follow(
            *(server, operation, "operations"),
            while_in=("running",),
            said=(subject, doing),
            timeout=args.timeout,
        )
    if operation["state"] not in ("running", "succeeded"):
        raise Stop(FAILED, operation["status_message"], operation)
    now = doing if operation["state"] == "running" else done
    show_thing(args, operation, f"{subject} {now}.")
    return operation


def follow(
    server: Server,
    thing: Json,
    path: str,
    *,
    key: str = "state",
    while_in: tuple[str, ...],
    said: tuple[str, str],
    timeout: float,
) -> Json:
    """Wait while a thing is in one of these states; return it as it is then.

    `said` are the words for people: the subject with its verb, and what is being done.

    Raises: Stop if it takes longer. The server continues.
    """
    subject, doing = said
    line, ends = ProgressLine(), time.monotonic() + timeout
    try:
        while thing[key] in while_in:
            if time.monotonic() > ends:
                raise Stop(UNDER_WAY, f"{subject} still {doing}.")
            line.say(", ".join(filter(None, [f"{subject} {doing}", moved(thing)])))
            time.sleep(POLL_EVERY_SECONDS)
            thing = server.ask("GET", f"{path}/{thing['id']}")
    finally:
        line.clear()
    return thing


def moved(operation: Json) -> str:
    """Return how far the running step says that it is, "" if it does not."""
    steps = operation.get("steps", [])
    running = [step for step in steps if step["state"] == "running"]
    return next((str(step["progress"].get("text", "")) for step in running), "")


def run_snapshots(args: argparse.Namespace) -> None:
    server = server_of(args)
    template = find_template(server, args)
    query = {"template": template["id"], "limit": 200}
    found = all_pages(server, "snapshots", query)
    default = (template["snapshot"] or {}).get("id")

    def row(snapshot: Json) -> list[Any]:
        return snapshot_row(snapshot, is_default=snapshot["id"] == default)

    heading = ["ID", "NAME", "CHANGE", "QUALITY", "CREATED", "", "LABEL"]
    show_rows(args, found, heading, row, nothing="It has no snapshots.")


def snapshot_row(snapshot: Json, *, is_default: bool) -> list[Any]:
    marks = [
        *(["default"] if is_default else []),
        *(["held"] if snapshot["held_at"] else []),
        *(["withdrawn"] if snapshot["withdrawn_at"] else []),
    ]
    return [
        *(snapshot["id"], snapshot["name"], snapshot["change"], snapshot["quality"]),
        *(local_time(snapshot["created_at"]), ", ".join(marks), snapshot["label"]),
    ]


def run_snapshot(args: argparse.Namespace) -> None:
    """Show, hold, withdraw or describe a snapshot."""
    server, where = server_of(args), f"snapshots/{args.id}"
    has_text = args.what in ("label", "notes")
    if has_text != (args.text is not None):
        how = "takes the text" if has_text else "takes no text"
        raise Stop(USAGE, f"“cloneyard snapshot {args.what} ID” {how}.")
    if args.what in ("use", "withdraw") and not args.reason:
        raise Stop(USAGE, "Say why with --reason: people who choose read it.")
    if args.what == "show":
        snapshot = server.ask("GET", where)
    elif has_text:
        snapshot = server.ask("PATCH", where, body={args.what: args.text})
    elif args.what == "release":
        snapshot = server.ask("POST", f"{where}/release", body={})
    else:
        verb = {"use": "hold"}.get(args.what, args.what)
        body = {"reason": args.reason}
        snapshot = server.ask("POST", f"{where}/{verb}", body=body)
    show_snapshot(args, snapshot)


def show_snapshot(args: argparse.Namespace, snapshot: Json) -> None:
    if args.json:
        print_json(snapshot)
        return
    rows = {
        "name": snapshot["name"],
        "id": snapshot["id"],
        "change": snapshot["change"],
        "quality": snapshot["quality"],
        "created": local_time(snapshot["created_at"]),
        "label": snapshot["label"],
        "notes": snapshot["notes"],
        "held": said_by(snapshot, "held", "hold_reason"),
        "withdrawn": said_by(snapshot, "withdrawn", "withdraw_reason"),
    }
    print_rows(rows)


# --- mirrors


def run_mirrors(args: argparse.Namespace) -> None:
    """List mirrors, of all templates or of one; or transfer a snapshot to one."""
    server = server_of(args)
    if args.about == "transfer":
        transfer_to_mirror(server, args)
        return
    if args.template is not None or args.snapshot is not None:
        raise Stop(USAGE, "“cloneyard mirrors [TEMPLATE]” takes nothing more.")
    query: Json = {"limit": 200}
    if args.about is not None:
        args.template = args.about
        query["template"] = find_template(server, args)["id"]
    found = all_pages(server, "mirrors", query)
    heading = ["ID", "TEMPLATE", "SITE", "STATE", "CHANGE", "BEHIND", "TRANSFERS"]
    show_rows(args, found, [*heading, "TROUBLE"], mirror_row, nothing="No mirrors.")


def mirror_row(mirror: Json) -> list[Any]:
    figures = mirror["figures"]
    newest, behind = figures["newest"], figures["snapshots_behind"]
    if figures["has_default"]:
        said = "up to date"
    elif not behind:
        said = "-"
    else:
        said = f"{behind} snapshot{'' if behind == 1 else 's'}"
    return [
        *(mirror["id"], mirror["template"], mirror["site"], mirror["state"]),
        *(newest["change"] if newest else "-", said),
        f"{mirror['cron']} UTC" if mirror["start"] == "schedule" else mirror["start"],
        mirror["status_message"] or mirror["trouble"],
    ]


def transfer_to_mirror(server: Server, args: argparse.Namespace) -> None:
    """Transfer a template's default snapshot, or the named one, to a mirror.

    Raises: Stop if there is no such mirror, it is refused, or it failed.
    """
    if args.template is None or args.to is None:
        raise Stop(USAGE, "“cloneyard mirrors transfer” takes TEMPLATE and SITE.")
    template = find_template(server, args)
    query = {"template": template["id"], "site": args.to}
    found = server.ask("GET", "mirrors", query=query)["results"]
    if not found:
        sentence = f"{template['name']} has no mirror at “{args.to}”."
        raise Stop(NOT_FOUND, sentence)
    body = {} if args.snapshot is None else {"snapshot": id_or_name(args.snapshot)}
    where = f"mirrors/{found[0]['id']}/transfer"
    operation = server.ask("POST", where, body=body)
    what = args.snapshot or "The default snapshot"
    there = (f"being transferred to {args.to}", f"available at {args.to}")
    follow_operation(server, args, operation, said=(f"{what} is", *there))


# --- sites, pages, logs


def run_sites(args: argparse.Namespace) -> None:
    """List sites. Without being an administrator one sees those of one's templates."""
    server = server_of(args)
    try:
        found = server.ask("GET", "sites")["results"]
    except Stop as stop:
        if stop.body.get("code") != "not_allowed":
            raise
        found = sites_of_templates(server)
        show_rows(
            args, found, ["NAME"], lambda site: [site["name"]], nothing="No sites."
        )
        return
    heading = ["NAME", "TITLE", "PERFORCE", "STATE", "HOSTS"]
    show_rows(args, found, heading, site_row, nothing="No sites.")


def run_dedupe_plans(args: argparse.Namespace) -> None:
    """List which volumes of sites are deduplicated and when, or switch a plan."""
    server = server_of(args)
    plans = server.ask("GET", "deduplication/plans")["results"]
    if args.site is not None:
        plans = [plan for plan in plans if plan["site"] == args.site]
        if not plans:
            raise Stop(NOT_FOUND, f"There is no site “{args.site}”.")
    if args.is_on is not None:
        if args.site is None:
            raise Stop(USAGE, "Name the site whose plan is switched.")
        where = f"deduplication/plans/{plans[0]['site_id']}"
        plans = [server.ask("PATCH", where, body={"is_on": args.is_on})]
    heading = ["SITE", "PLAN", "WINDOWS", "MINUTES", "STATUS"]
    show_rows(args, plans, heading, dedupe_plan_row, nothing="No sites.")


def dedupe_plan_row(plan: Json) -> list[Any]:
    return [
        *(plan["site"], "on" if plan["is_on"] else "off", f"{plan['cron']} UTC"),
        *(plan["minutes"], plan["status"]),
    ]


def run_sandboxes(args: argparse.Namespace) -> None:
    """List sandboxes of Perforce servers: one's own, administrators all."""
    found = all_pages(server_of(args), "sandboxes", {"limit": 200})
    heading = ["NAME", "COPY OF", "STATE", "P4PORT", "P4D", "OWNER", "ENDS", "WHY"]
    show_rows(args, found, heading, sandbox_row, nothing="No sandboxes.")


def sandbox_row(sandbox: Json) -> list[Any]:
    return [
        *(sandbox["name"], sandbox["server"], sandbox["state"], sandbox["p4port"]),
        *(sandbox["release"], sandbox["owner"], local_time(sandbox["expires_at"])),
        sandbox["status_message"],
    ]


def run_sandbox(args: argparse.Namespace) -> None:
    """Create a sandbox, show it, or do something with it.

    Raises: Stop if there is none of the name, or it is refused.
    """
    server = server_of(args)
    if args.what == "create":
        sandbox = create_sandbox(server, args)
        where = f"sandboxes/{sandbox['id']}"
    else:
        named = all_pages(server, "sandboxes", {"limit": 200})
        found = next((each for each in named if each["name"] == args.sandbox), None)
        if found is None:
            sentence = f"There is no sandbox “{args.sandbox}” for you to see."
            raise Stop(NOT_FOUND, sentence)
        sandbox, where = found, f"sandboxes/{found['id']}"
    if args.what == "extend":
        sandbox = server.ask("POST", f"{where}/extend", body={"hours": args.hours})
    elif args.what in ("retire", "start", "retry"):
        is_retirement = args.what == "retire"
        body = {"without_host": args.without_host} if is_retirement else None
        operation = server.ask("POST", f"{where}/{args.what}", body=body)
        doing, done = SANDBOX_WORDS[args.what]
        said = (f"{args.sandbox} is", doing, done)
        follow_operation(server, args, operation, said=said)
        return
    if args.what == "create" and args.wait is not False:
        sandbox = settle_sandbox(server, sandbox, timeout=args.timeout)
    if args.json:
        print_json(sandbox)
    else:
        print_sandbox(sandbox)


SANDBOX_WORDS = {
    "retire": ("being retired", "gone"),
    "start": ("being started", "ready"),
    "retry": ("being tried again", "done"),
}


def create_sandbox(server: Server, args: argparse.Namespace) -> Json:
    if args.of is None or args.version is None or args.host is None:
        raise Stop(
            USAGE, "“cloneyard sandbox create” needs --of, --version and --host."
        )
    body = given(
        name=args.sandbox,
        server=id_or_name(args.of),
        host=id_or_name(args.host),
        version=args.version,
        purpose=args.purpose,
        hours=args.hours,
        reason=args.reason or None,
        port=args.port or None,
        server_id=args.server_id or None,
    )
    return server.ask("POST", "sandboxes", body=body, is_repeatable=False)


def settle_sandbox(
    server: Server, sandbox: Json, *, timeout: float, is_recipe: bool = False
) -> Json:
    """Wait until a sandbox is ready, or the work that it is made for is done.

    Raises: Stop if it failed, or takes longer.
    """
    expected = ("ready", "retiring", "retired") if is_recipe else ("ready",)
    sandbox = follow(
        *(server, sandbox, "sandboxes"),
        while_in=("creating",),
        said=(f"{sandbox['name']} is", "being created"),
        timeout=timeout,
    )
    if sandbox["state"] not in expected:
        raise Stop(FAILED, sandbox["status_message"], sandbox)
    return sandbox


def print_sandbox(sandbox: Json) -> None:
    keys = ("name", "server", "state", "p4port", "release", "server_id", "consistency")
    rows = [[key.replace("_", " "), sandbox[key]] for key in keys if sandbox[key]]
    rows.append(["ends", local_time(sandbox["expires_at"])])
    if sandbox["status_message"]:
        rows.append(["why", sandbox["status_message"]])
    print_table(rows)
    for said in sandbox["defanged"]:
        print(plain(said))


# --- checkpoints, verified archives and drills, for administrators


PLAN_HEADING = ["SERVER", "PLAN", "WHEN", "HOST", "P4D", "LAST"]


def run_checkpoint_plans(args: argparse.Namespace) -> None:
    changes = {
        "directory": args.directory,
        "keep_daily": args.keep_daily,
        "keep_weekly": args.keep_weekly,
        "oldest_hours": args.oldest_hours,
    }
    list_or_save_plans(args, "checkpoint-plans", changes)


def run_verification_plans(args: argparse.Namespace) -> None:
    list_or_save_plans(args, "verification-plans", {"has_shelved": args.has_shelved})


def run_drill_plans(args: argparse.Namespace) -> None:
    pairs = [given.partition("=") for given in args.replica]
    for source, _, replica in pairs:
        if not (source and replica):
            raise Stop(USAGE, "“--replica” takes VOLUME=REPLICA.")
    replicas = {source: replica for source, _, replica in pairs} or None
    changes = {"replicas": replicas, "oldest_hours": args.oldest_hours}
    list_or_save_plans(args, "drill-plans", changes)


def list_or_save_plans(args: argparse.Namespace, path: str, changes: Json) -> None:
    """List the plans of servers, or change that of one.

    Raises: Stop if there is no such server or plan, or the change is refused.
    """
    server = server_of(args)
    body = given(
        host=None if args.host is None else id_or_name(args.host),
        **{"version": args.version, "cron": args.cron, "is_on": args.is_on, **changes},
    )
    if not body:
        plans = server.ask("GET", path)["results"]
        if args.of is not None:
            plans = [plan for plan in plans if plan["server"] == args.of]
        show_rows(args, plans, PLAN_HEADING, plan_row, nothing="No plans.")
        return
    if args.of is None:
        raise Stop(USAGE, "Name the server whose plan is changed.")
    number = find_perforce_server(server, args.of)["id"]
    plan = server.ask("PATCH", f"{path}/{number}", body=body)
    show_rows(args, [plan], PLAN_HEADING, plan_row, nothing="")


def find_perforce_server(server: Server, name: str) -> Json:
    """Return a Perforce server by its name or ID. Raises: Stop if there is none."""
    wanted = id_or_name(name)
    for each in server.ask("GET", "perforce-servers")["results"]:
        if wanted in (each["id"], each["name"]):
            return dict(each)
    raise Stop(NOT_FOUND, f"There is no Perforce server “{name}”.")


def plan_row(plan: Json) -> list[Any]:
    return [
        *(plan["server"], "on" if plan["is_on"] else "off", f"{plan['cron']} UTC"),
        *(plan["host"] or "-", plan["version"] or "-"),
        ("failed: " if plan["has_failed"] else "") + (plan["status"] or "-"),
    ]


def of_server(found: list[Json], name: str | None) -> list[Json]:
    return [each for each in found if name is None or each["server"] == name]


def run_checkpoints(args: argparse.Namespace) -> None:
    """List the checkpoints that are kept, or with --all those that were, too."""
    query = given(limit=200, kept=None if args.all else "yes", server=args.of)
    found = all_pages(server_of(args), "checkpoints", query)
    heading = ["SERVER", "AS OF", "CHANGE", "JOURNAL", "PROVEN", "HOST", "FILE"]
    show_rows(
        args, found, [*heading, "REMARK"], checkpoint_row, nothing="No checkpoints."
    )


def checkpoint_row(checkpoint: Json) -> list[Any]:
    return [
        *(checkpoint["server"], local_time(checkpoint["taken_at"])),
        *(said_number(checkpoint["change"]), said_number(checkpoint["journal"])),
        *("yes" if checkpoint["is_proven"] else "no", checkpoint["host"]),
        checkpoint["path"],
        checkpoint["removed_because"] or checkpoint["remark"],
    ]


def said_number(number: float | None, unit: str = "") -> str:
    return "-" if number is None else f"{round(number, 3):.15g}{unit}"


def run_checkpoint(args: argparse.Namespace) -> None:
    """Make a checkpoint by the plan of a server; wait until it is kept.

    Raises: Stop if it is refused, failed, or is not proven.
    """
    server = server_of(args)
    body = {"server": id_or_name(args.of)}
    asked = server.ask("POST", "checkpoints", body=body, is_repeatable=False)
    if args.wait is False:
        show_thing(
            args, asked, f"{asked['name']} makes a checkpoint of {asked['server']}."
        )
        return
    sandbox = settle_sandbox(server, asked, timeout=args.timeout, is_recipe=True)
    query = {"server": sandbox["server"], "limit": 200}
    made = newest_of(server, "checkpoints", query, sandbox)
    where = f"on {made['host']} as {made['path']}"
    stands = said_number(made["change"])
    show_thing(args, made, f"Kept {where}, proven, at change {stands}.")


def run_verifications(args: argparse.Namespace) -> None:
    """List verifications of archives; with --id, what is lost and damaged in one."""
    server = server_of(args)
    if args.id is not None:
        where = f"verifications/{args.id}/damaged"
        damaged = all_pages(server, where, {"limit": 200})
        heading = ["STATUS", "DEPOT", "CHANGE", "FILE"]
        show_rows(args, damaged, heading, damaged_row, nothing="Nothing is damaged.")
        return
    found = of_server(all_pages(server, "verifications", {"limit": 200}), args.of)
    heading = ["ID", "SERVER", "AS OF", "DAMAGED", "LOST", "SHELVED", "DEPOTS", "ENDED"]
    show_rows(args, found, heading, verification_row, nothing="No verifications.")


def damaged_row(damaged: Json) -> list[Any]:
    is_shelved = damaged["revision"] is None
    mark = f"@={damaged['change']}" if is_shelved else f"#{damaged['revision']}"
    where = f"{damaged['path']}{mark}"
    return [damaged["status"], damaged["depot"], damaged["change"], where]


def verification_row(verification: Json) -> list[Any]:
    depots = [each for each in verification["depots"] if not each["left_out"]]
    return [
        *(verification["id"], verification["server"]),
        local_time(verification["taken_at"]),
        *(verification["bad"], verification["missing"]),
        *(verification["shelved_bad"] + verification["shelved_missing"], len(depots)),
        local_time(verification["ended_at"]),
    ]


def run_verify(args: argparse.Namespace) -> None:
    """Verify the archives of a server by its plan; wait for what it finds.

    Raises: Stop if it is refused or failed, and if files are lost or damaged.
    """
    server = server_of(args)
    body = {"server": id_or_name(args.of)}
    asked = server.ask("POST", "verifications", body=body, is_repeatable=False)
    if args.wait is False:
        show_thing(args, asked, f"{asked['name']} verifies the archives.")
        return
    sandbox = settle_sandbox(server, asked, timeout=args.timeout, is_recipe=True)
    found = newest_of(server, "verifications", {"limit": 200}, sandbox)
    said = f"{found['bad']} damaged revisions, {found['missing']} lost."
    shelved = found["shelved_bad"] + found["shelved_missing"]
    if shelved:
        said += f" {shelved} shelved files are damaged or lost."
    if found["bad"] or found["missing"] or shelved:
        more = f"“cloneyard verifications --id {found['id']}” lists them."
        raise Stop(FAILED, f"{said} {more}", found)
    show_thing(args, found, said)


def newest_of(server: Server, path: str, query: Json, sandbox: Json) -> Json:
    """Return what a sandbox left. Raises: Stop if it left nothing."""
    for each in server.ask("GET", path, query=query)["results"]:
        if each["sandbox"] == sandbox["name"]:
            return dict(each)
    sentence = f"{sandbox['name']} was retired before it had finished."
    raise Stop(FAILED, sentence, sandbox)


def run_drills(args: argparse.Namespace) -> None:
    """List disaster drills, newest first."""
    found = of_server(all_pages(server_of(args), "drills", {"limit": 200}), args.of)
    heading = ["SERVER", "SITE", "BEGUN", "OUTCOME", "COPY OLD", "ANSWERED", "CHANGE"]
    show_rows(
        args, found, [*heading, "REMARK"], drill_row, nothing="No disaster drills."
    )


def drill_row(drill: Json) -> list[Any]:
    return [
        *(drill["server"], drill["site"], local_time(drill["requested_at"])),
        *(drill["outcome"], said_number(drill["lost_seconds"], " s")),
        *(said_number(drill["took_seconds"], " s"), said_number(drill["change"])),
        drill["trouble"] or drill["finding"],
    ]


def run_drill(args: argparse.Namespace) -> None:
    """Bring a server up at another site by its plan; wait for what comes of it.

    Raises: Stop if it is refused or failed, and if the copy is too old.
    """
    server = server_of(args)
    body = {"server": id_or_name(args.of)}
    drill = server.ask("POST", "drills", body=body, is_repeatable=False)
    if args.wait is not False:
        drill = follow(
            *(server, drill, "drills"),
            key="outcome",
            while_in=("Running",),
            said=(f"{drill['server']} is", f"being brought up at {drill['site']}"),
            timeout=args.timeout,
        )
    if drill["outcome"] not in ("Running", "Passed"):
        said = drill["trouble"] or drill["finding"] or "The drill was stopped."
        raise Stop(FAILED, said, drill)
    sentence = f"{drill['sandbox']} was started at {drill['site']}."
    if drill["outcome"] == "Passed":
        sentence = (
            f"{drill['server']} answered at {drill['site']} after "
            f"{said_number(drill['took_seconds'])} s, at change "
            f"{said_number(drill['change'])}; the copy was "
            f"{said_number(drill['lost_seconds'])} s old."
        )
    show_thing(args, drill, sentence)


def switching() -> Parser:
    """Return the options that switch a plan on or off."""
    options = Parser(add_help=False)
    switch = options.add_mutually_exclusive_group()
    for name, is_on in (("on", True), ("off", False)):
        switch.add_argument(
            f"--{name}",
            dest="is_on",
            action="store_const",
            const=is_on,
            help=f"switch the plan {name}",
        )
    return options


def add_recipe_commands(add: Any, asking: Parser) -> None:
    """Add the commands of checkpoints, verifications, drills, and their plans."""
    of_one, of_any = Parser(add_help=False), Parser(add_help=False)
    of_one.add_argument("of", metavar="SERVER", type=word, help="a Perforce server")
    of_any.add_argument(
        "of", metavar="SERVER", nargs="?", type=word, help="a Perforce server"
    )
    planning = Parser(add_help=False, parents=[of_any, switching()])
    planning.add_argument("--host", type=word, help="a host of sandboxes")
    planning.add_argument("--version", metavar="RELEASE", type=word, help="of p4d")
    planning.add_argument("--cron", help='when, in UTC, such as "30 2 * * *"')
    aging = Parser(add_help=False)
    aging.add_argument(
        *("--oldest-hours",),
        metavar="N",
        type=int,
        help="age above which administrators are told",
    )

    kept = add("checkpoints", run_checkpoints, "list checkpoints that are kept", of_any)
    kept.add_argument("--all", action="store_true", help="and those removed since")
    make = "make a checkpoint of a server by its plan"
    add("checkpoint", run_checkpoint, make, of_one, asking)
    plans = add(
        "checkpoint-plans",
        run_checkpoint_plans,
        "list plans of checkpoints, or change that of a server",
        *(planning, aging),
    )
    plans.add_argument("--directory", type=word, help="where on the host they are kept")
    for name in ("daily", "weekly"):
        plans.add_argument(
            *(f"--{name}",),
            dest=f"keep_{name}",
            metavar="N",
            type=int,
            help="how many are kept",
        )
    listing = add(
        "verifications", run_verifications, "list verifications of archives", of_any
    )
    listing.add_argument("--id", type=int, help="list the lost and damaged of this one")
    verify = "verify the archives of a server by its plan"
    add("verify", run_verify, verify, of_one, asking)
    verifying = add(
        "verification-plans",
        run_verification_plans,
        "list plans of verifications, or change that of a server",
        planning,
    )
    shelved = verifying.add_mutually_exclusive_group()
    for option, has_shelved in (("--shelved", True), ("--no-shelved", False)):
        shelved.add_argument(
            *(option,),
            dest="has_shelved",
            action="store_const",
            const=has_shelved,
            help=f"verify {'' if has_shelved else 'no '}shelved files",
        )
    add("drills", run_drills, "list disaster drills", of_any)
    add("drill", run_drill, "make a disaster drill by its plan", of_one, asking)
    drill_plans = add(
        "drill-plans",
        run_drill_plans,
        "list plans of disaster drills, or change that of a server",
        *(planning, aging),
    )
    drill_plans.add_argument(
        "--replica",
        action="append",
        default=[],
        metavar="VOLUME=REPLICA",
        help="what SnapMirror fills from a volume of the server; once for each",
    )


# --- qualification


PROFILES = (
    *("browse", "branchsubmit", "branchsubmit-edit", "sync"),
    *("build-load", "rim", "deltas", "workspaces"),
)
RUN_NUMBERS = (
    *("files", "size", "seed", "children", "hosts", "rounds"),
    *("stagger_ms", "repeats"),
)


def run_qualifications(args: argparse.Namespace) -> None:
    """List what was measured: one's own runs, administrators all."""
    found = all_pages(server_of(args), "qualification-runs", {"limit": 200})
    heading = ["ID", "PROFILE", "SERVER", "AT", "STATE", "BEGUN", "NOTE"]
    show_rows(args, found, heading, run_row, nothing="Nothing was measured.")


def run_row(run: Json) -> list[Any]:
    return [
        *(run["id"], run["profile"], run["server"]),
        run["sandbox"] or run["template"] or "the server",
        *(run["state"], local_time(run["created_at"]), run["note"]),
    ]


def run_qualification(args: argparse.Namespace) -> None:
    """Measure, measure a baseline, show a run, or go on with one that failed.

    Raises: Stop if it is refused, there is no such run, or it failed.
    """
    server = server_of(args)
    if args.what in ("measure", "baseline"):
        run = begin_run(server, args)
    else:
        if not args.subject.isdigit():
            raise Stop(USAGE, f"“cloneyard qualification {args.what}” takes an ID.")
        where = f"qualification-runs/{args.subject}"
        if args.what == "retry":
            run = server.ask("POST", f"{where}/retry")
        else:
            run = server.ask("GET", where)
    waits = args.wait if args.what == "show" else args.wait is not False
    if waits:
        run = settle_run(server, run, timeout=args.timeout)
    if args.json:
        print_json(run)
    else:
        print_run(run)


def begin_run(server: Server, args: argparse.Namespace) -> Json:
    if args.subject not in PROFILES:
        raise Stop(USAGE, f"Choose a profile: {', '.join(PROFILES)}.")
    asked = {name: getattr(args, name) for name in RUN_NUMBERS}
    asked.update(profile=args.subject, is_cold=args.cold or None, note=args.note)
    rows = {"server": args.of, "sandbox": args.sandbox, "template": args.template}
    if args.what == "baseline":
        rows = {"server": args.of, "host": args.host}
        asked.update(name=args.name, version=args.version, hours=args.hours)
        if None in (args.of, args.host, args.name, args.version):
            need = "--of, --name, --version and --host"
            raise Stop(USAGE, f"“cloneyard qualification baseline” needs {need}.")
    elif sum(row is not None for row in rows.values()) != 1:
        raise Stop(USAGE, "Say what is measured: --sandbox, --of or --template.")
    for name, row in rows.items():
        asked[name] = None if row is None else id_or_name(row)
    path = "qualification-runs" + ("/baseline" if args.what == "baseline" else "")
    return server.ask("POST", path, body=given(**asked), is_repeatable=False)


def settle_run(server: Server, run: Json, *, timeout: float) -> Json:
    """Wait until a run has ended. Raises: Stop if it failed, or takes longer."""
    run = follow(
        *(server, run, "qualification-runs"),
        while_in=("waiting", "running"),
        said=(f"Run {run['id']} is", "running"),
        timeout=timeout,
    )
    if run["state"] != "done":
        raise Stop(FAILED, run["status_message"], run)
    return run


def print_run(run: Json) -> None:
    where = run["sandbox"] or run["template"] or "the server itself"
    print(
        f"Run {run['id']}: {plain(run['profile'])} of {plain(run['server'])}, ", end=""
    )
    print(f"{plain(where)}, {run['state']}. {plain(run['status_message'])}".rstrip())
    figures = [
        [each["title"], f"{said_number(each['average'])} {each['unit']}".rstrip()]
        for each in run["figures"]
    ]
    if figures:
        print_table([["FIGURE", "AVERAGE"], *figures])
    phases = [
        [
            *(each["at_once"], each["phase"], each["number"]),
            *(said_number(each["median"]), said_number(each["p95"])),
        ]
        for each in run["phases"]
    ]
    if phases:
        print_table([["AT ONCE", "PHASE", "NUMBER", "MEDIAN s", "P95 s"], *phases])


def add_qualification_commands(add: Any, asking: Parser) -> None:
    add("qualifications", run_qualifications, "list what was measured")
    run = add(
        "qualification",
        run_qualification,
        "measure a sandbox, a scratch server or workspaces; show or retry a run",
        asking,
    )
    run.add_argument(
        "what",
        choices=["measure", "baseline", "show", "retry"],
        metavar="WHAT",
        help="measure PROFILE, baseline PROFILE, show ID, retry ID",
    )
    run.add_argument(
        "subject",
        metavar="PROFILE|ID",
        type=word,
        help=f"one of {', '.join(PROFILES)}; or the ID of a run",
    )
    run.add_argument("--sandbox", type=word, help="measure: a sandbox that is ready")
    run.add_argument(
        *("--of",),
        metavar="SERVER",
        type=word,
        help="measure: a scratch server; baseline: the server that is copied",
    )
    run.add_argument("--template", type=word, help="measure: its workspaces")
    run.add_argument("--cold", action="store_true", help="with cold caches")
    run.add_argument("--note", help="shown beside its figures")
    for name in RUN_NUMBERS:
        option = f"--{name.replace('_', '-')}"
        run.add_argument(option, metavar="N", type=int, help="default: as usual")
    run.add_argument("--name", type=word, help="baseline: of its sandbox")
    run.add_argument("--version", metavar="RELEASE", type=word, help="baseline: of p4d")
    run.add_argument("--host", type=word, help="baseline: where p4d runs")
    run.add_argument(
        "--hours", metavar="N", type=int, default=8, help="baseline: at most how long"
    )


def run_snapshot_policies(args: argparse.Namespace) -> None:
    """List how many snapshots are kept of workspaces; set a policy, or delete one."""
    server = server_of(args)
    if args.delete is not None:
        server.ask("DELETE", f"snapshot-policies/{args.delete}")
        tell(f"Policy {args.delete} was deleted.")
        return
    body = given(hourly=args.hourly, daily=args.daily, max_percent=args.max_percent)
    if body and args.site is None:
        raise Stop(USAGE, "Name the site whose policy is set.")
    if not body and (args.template or args.purpose):
        raise Stop(USAGE, "Say what is kept: --hourly N, --daily N, --max-percent N.")
    if body:
        body.update(site=args.site, purpose=args.purpose or "")
        if args.template is not None:
            body["template"] = find_template(server, args)["id"]
        policies = [server.ask("POST", "snapshot-policies", body=body)]
    else:
        policies = server.ask("GET", "snapshot-policies")["results"]
        if args.site is not None:
            policies = [policy for policy in policies if policy["site"] == args.site]
    heading = ["ID", "SITE", "TEMPLATE", "PURPOSE", "HOURLY", "DAILY", "SPACE"]
    show_rows(
        args,
        policies,
        heading,
        snapshot_policy_row,
        nothing="No policies: no snapshots are taken of workspaces.",
    )


def snapshot_policy_row(policy: Json) -> list[Any]:
    percent = policy.get("max_percent")  # which older servers do not say
    return [
        *(policy["id"], policy["site"], policy["template"] or "all"),
        *(policy["purpose"] or "all", policy["hourly"], policy["daily"]),
        f"{percent} %" if percent else "-",
    ]


def run_upload_log(args: argparse.Namespace) -> None:
    """Send a log of a Perforce server, and wait until it is read."""
    server = server_of(args)
    path = Path(args.file)
    try:
        with path.open("rb") as file:
            query = {"server": args.of, "name": path.name}
            upload = server.upload("server-log-uploads", query, file)
    except OSError as error:
        raise Stop(USAGE, f"{path}: {error.strerror}.") from None
    if args.wait is not False:
        upload = follow(
            *(server, upload, "server-log-uploads"),
            while_in=("waiting",),
            said=(f"{upload['name']} is", "being read"),
            timeout=args.timeout,
        )
    if upload["state"] == "refused":
        raise Stop(REFUSED, upload["message"], upload)
    said = upload["message"] or f"{upload['name']} is uploaded. A worker reads it."
    show_thing(args, upload, said)


def run_processes(args: argparse.Namespace) -> None:
    """List processes of Perforce servers, longest first; or end one."""
    server = server_of(args)
    if args.end is not None:
        ending = server.ask("POST", f"processes/{args.end}/end")
        what = f"{ending['command']} of {ending['user']}"
        where = f"{ending['number']} at {ending['server']}"
        show_thing(args, ending, f"Process {where}, {what}, is being ended.")
        return
    asked = given(server=args.of, user=args.user, at_least=args.at_least)
    found = all_pages(server, "processes", {**asked, "limit": 200})
    heading = ["ID", "SERVER", "NUMBER", "STATE", "USER", "COMMAND", "STARTED"]
    show_rows(args, found, heading, process_row, nothing="No processes.")


def process_row(process: Json) -> list[Any]:
    names = ("id", "server", "number", "state", "user", "command")
    return [*(process[name] for name in names), local_time(process["started_at"])]


def sites_of_templates(server: Server) -> list[Json]:
    templates = all_pages(server, "templates", {"limit": 200})
    return [{"name": name} for name in sorted({each["site"] for each in templates})]


def site_row(site: Json) -> list[Any]:
    names = ("name", "title", "perforce_server", "health")
    hosts = ", ".join(site.get("hosts", []))
    return [*(site.get(name, "-") for name in names), hosts or "-"]


def run_open(args: argparse.Namespace) -> None:
    """Print the URL of a page, and open it if there is a screen."""
    server = server_of(args)
    page = ""
    if args.template is not None:
        page = f"templates/{find_template(server, args)['id']}/"
    elif args.workspace is not None:
        page = f"workspaces/{server.find(args.workspace)['id']}/"
    address = f"{server.address}/{page}"
    if args.json:
        print_json({"url": address})
        return
    print(address)
    has_screen = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    if has_screen or sys.platform in ("darwin", "win32"):
        webbrowser.open(address)


def run_logs(args: argparse.Namespace) -> None:
    """Print what a step printed: its end, all of it, or new output as it comes."""
    server = server_of(args)
    where = f"operations/{operation_to_read(server, args)}"
    query: Json = {}
    if args.step is not None:
        query["step"] = args.step
    if args.all:
        query["offset"] = 0
    try:
        piece = print_log(server, where, query, args)
    except KeyboardInterrupt:
        raise Stop(INTERRUPTED, "Interrupted. The server continues.") from None
    if piece["step"] is None:
        tell("Nothing printed yet.")
    elif piece["ending"]:
        tell(f"{piece['title']}: {piece['ending']}")
    if args.follow and piece["operation_state"] not in ("running", "succeeded"):
        operation = server.ask("GET", where)
        raise Stop(FAILED, operation["status_message"] or "It failed.", operation)


def operation_to_read(server: Server, args: argparse.Namespace) -> int:
    """Return the id of the chosen operation, by default the newest.

    Raises: Stop if there is none.
    """
    if args.operation is not None:
        return int(args.operation)
    if args.template is not None:
        template = find_template(server, args)
        query = {"template": template["id"], "limit": 1}
        newest = server.ask("GET", "operations", query=query)["results"]
        name = template["name"]
    elif args.workspace is not None:
        workspace = server.find(args.workspace)
        newest = [workspace["operation"]] if workspace["operation"] else []
        name = workspace["name"]
    else:
        raise Stop(USAGE, "Name a workspace, or give --template or --operation.")
    if not newest:
        raise Stop(NOT_FOUND, f"{name} has no operations yet.")
    return int(newest[0]["id"])


def print_log(
    server: Server, where: str, query: Json, args: argparse.Namespace
) -> Json:
    """Print a log, and with --follow those of later steps; return the last piece."""
    shown = None
    while True:
        piece = server.ask("GET", f"{where}/log", query=query)
        print_piece(
            piece, args, is_first=shown is None, is_other=piece["step"] != shown
        )
        shown = piece["step"]
        is_over = piece["operation_state"] != "running"
        if shown is None:
            if is_over or not args.follow:
                return piece
            query["offset"] = 0
            time.sleep(POLL_EVERY_SECONDS)
            continue
        query = {"step": shown, "offset": piece["next_offset"]}
        query["attempt"] = piece["attempt"]
        if not piece["is_last"]:
            continue
        if not args.follow or (not piece["is_running"] and (args.step or is_over)):
            return piece
        if not piece["is_running"] and piece["current_step"] != shown:
            query = {"step": piece["current_step"], "offset": 0}
        else:
            time.sleep(POLL_EVERY_SECONDS)


def print_piece(
    piece: Json, args: argparse.Namespace, *, is_first: bool, is_other: bool
) -> None:
    if args.json:
        print(json_text(piece), flush=True)
        return
    if is_other and args.follow:
        tell(f"{piece['title']}:")
    if is_first and piece["offset"] > 0:
        tell(f"{piece['offset']:,} bytes come before: --all prints them.")
    write_log(piece["text"])


def write_log(text: str) -> None:
    """Write a command's output; of control codes, a terminal gets only colors."""
    if sys.stdout.isatty():
        text = COLOR_OR_CONTROL.sub(lambda found: found[1] or "", text)
    sys.stdout.write(text)
    sys.stdout.flush()


# --- completion


SHELLS = {
    "bash": """_cloneyard() {
    local IFS=$'\\n'
    COMPREPLY=($("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" \
        2>/dev/null))
}
complete -o default -F _cloneyard cloneyard
""",
    "zsh": """#compdef cloneyard
_cloneyard() {
    local -a found
    found=("${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    [[ -n $found ]] && compadd -a found || _files
}
compdef _cloneyard cloneyard
""",
    "fish": """function __cloneyard
    set -l typed (commandline -opc) (commandline -ct)
    $typed[1] complete -- $typed[2..] 2>/dev/null
end
complete -c cloneyard -f -a '(__cloneyard)'
""",
}
"""What each shell evaluates, so that it asks this program what a word could become."""


def run_completion(args: argparse.Namespace) -> None:
    sys.stdout.write(SHELLS[args.shell])


def run_complete(args: argparse.Namespace) -> None:
    """Print the completions of the last of these words, one per line."""
    *before, begun = args.words or [""]
    for candidate in candidates(before, begun):
        if candidate.startswith(begun):
            print(candidate)


def candidates(before: list[str], begun: str) -> list[str]:
    """Return what may follow some words; nothing if the server does not answer."""
    verbs = next(
        action.choices
        for action in make_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    verb = next((each for each in before if each in verbs), None)
    if verb is None:
        return sorted(each for each in verbs if each != "complete")
    actions = verbs[verb]._actions
    options = {name: each for each in actions for name in each.option_strings}
    if begun.startswith("-"):
        return sorted(options)
    rest = before[before.index(verb) + 1 :]
    expected = options.get(rest[-1]) if rest else None
    if expected is None or expected.nargs == 0:
        expected = next_positional(actions, options, rest)
    if expected is None:
        return []
    return [str(each) for each in expected.choices or names_of(expected.dest, rest)]


def next_positional(
    actions: list[argparse.Action], options: dict[str, argparse.Action], rest: list[str]
) -> argparse.Action | None:
    """Return the positional argument that comes after these words."""
    takes_value = [False, *(w in options and options[w].nargs != 0 for w in rest)]
    count = sum(
        not word.startswith("-") and not is_value
        for word, is_value in zip(rest, takes_value)
    )
    positionals = [each for each in actions if not each.option_strings]
    return positionals[count] if count < len(positionals) else None


LISTED = {"of": "perforce-servers", "sandbox": "sandboxes", "host": "sandbox-hosts"}
"""The lists of the server that name what an argument is, by its name."""


def names_of(kind: str, rest: list[str]) -> list[str]:
    """Return the names of the server's rows of a kind; [] without an answer.

    Somebody waits for these while typing, so it asks once and not for long.
    """
    if kind == "subject" and rest[0] in ("measure", "baseline"):
        return list(PROFILES)
    if kind == "what" and not rest:  # of “bisect”
        return [*names_of("template", rest), *sorted(VERDICTS), "show", "stop"]
    try:
        args = argparse.Namespace(server=None, ca_file=None, patience=0)
        server = server_of(args)
        server.answers_within = COMPLETE_WITHIN_SECONDS
        if kind == "workspace":
            query = {"owner": owner_of(server), "limit": 200, "retired": "false"}
            return names(server.ask("GET", "workspaces", query=query))
        if kind == "template":
            return names(server.ask("GET", "templates", query={"limit": 200}))
        if kind == "about":  # of “mirrors”
            return [*names_of("template", rest), "transfer"]
        if kind == "to":
            return sorted(
                {each["site"] for each in all_pages(server, "mirrors", {"limit": 200})}
            )
        if kind == "site":
            return [each["name"] for each in sites_of_templates(server)]
        if kind in LISTED:
            return names(server.ask("GET", LISTED[kind]))
    except Stop:
        pass
    return []


def names(page: Json) -> list[str]:
    return sorted({plain(each["name"]) for each in page["results"]})


# --- the command line itself


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors end like all others here."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_abbrev=False, **kwargs)

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        raise Stop(USAGE, f"{message}.")


def make_parser() -> Parser:
    common = Parser(add_help=False)
    common.add_argument("--json", action="store_true", help="print JSON")
    common.add_argument("--server", metavar="URL", help="the server's address")
    common.add_argument("--ca-file", metavar="PATH", help="certificates to trust (PEM)")
    common.add_argument(
        "--patience",
        metavar="SPAN",
        type=span,
        default=120,
        help="how long to retry a server that does not answer (2min)",
    )
    waiting = Parser(add_help=False)
    waiting.add_argument(
        "--timeout",
        metavar="SPAN",
        type=span,
        default=3600,
        help="how long to wait (1h)",
    )
    asking = Parser(add_help=False, parents=[waiting])
    either = asking.add_mutually_exclusive_group()
    either.add_argument(
        "--wait",
        action="store_const",
        const=True,
        help="return when it is done (default, except for show and stop)",
    )
    either.add_argument(
        "--no-wait",
        dest="wait",
        action="store_const",
        const=False,
        help="return at once",
    )
    exporting = Parser(add_help=False)
    exporting.add_argument(
        "--export",
        action="store_true",
        help='print shell commands that enter it: eval "$(… --export)"',
    )
    one = Parser(add_help=False)
    one.add_argument("workspace", type=word, help="name or ID")
    at_site = Parser(add_help=False)
    at_site.add_argument(
        "--site", type=word, help="where it is cloned (default: your home site)"
    )
    parser = Parser(
        prog="cloneyard",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=version_text())
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND")
    verbs.required = True

    def add(name: str, run: Any, text: str, *parents: Any) -> argparse.ArgumentParser:
        sub = verbs.add_parser(
            name, help=text, description=text, parents=[common, *parents]
        )
        sub.set_defaults(run=run)
        return sub

    login = add("login", run_login, "sign in to a server and keep a token for it")
    login.add_argument("--user", type=word, help="username")
    login.add_argument(
        "--token",
        action="store_true",
        help="store the token from CLONEYARD_TOKEN or standard input",
    )
    new = add("new", run_new, "create a workspace from a template", asking, exporting)
    new.add_argument("template", type=word, help="name or ID")
    new.add_argument(
        "--name", type=word, help="name of the workspace (default: generated)"
    )
    new.add_argument(
        "--site",
        type=word,
        help="where it is cloned (default: your home site), or nearest: that, else "
        "the site of your network",
    )
    new.add_argument(
        "--purpose", choices=["development", "build", "ci", "ci-edit"], default=None
    )
    new.add_argument("--quality", choices=["built", "tested"])
    new.add_argument("--snapshot", type=word, help="name or ID")
    new.add_argument(
        "--lease", metavar="SPAN", type=span, help="how long it lives, such as 8h"
    )
    new.add_argument(
        "--key",
        type=request_key,
        help="a repeated request with this key returns the same workspace",
    )
    listing = add("list", run_list, "list your workspaces")
    listing.add_argument(
        "--all", action="store_true", help="include retired workspaces"
    )
    whose = listing.add_mutually_exclusive_group()
    whose.add_argument("--owner", type=word, help="workspaces of this user")
    whose.add_argument(
        "--everybody", action="store_true", help="all workspaces you may see"
    )
    listing.add_argument("--template", type=word)
    listing.add_argument("--state", type=word)
    add("show", run_show, "show a workspace", one, exporting)
    add(
        "wait",
        run_wait,
        "wait until nothing is in progress in a workspace",
        *(one, waiting, exporting),
    )
    extend = add("extend", run_extend, "extend the lease of a workspace", one)
    extend.add_argument(
        "span",
        nargs="?",
        type=span,
        help="from now, such as 8h (default: the usual length)",
    )
    retire = add("retire", run_retire, "retire a workspace", one, asking)
    unsubmitted = retire.add_mutually_exclusive_group()
    unsubmitted.add_argument(
        "--rescue",
        dest="unsubmitted",
        action="store_const",
        const="rescue",
        default="refuse",
        help="shelve or archive unsubmitted work first",
    )
    unsubmitted.add_argument(
        "--discard",
        dest="unsubmitted",
        action="store_const",
        const="discard",
        help="discard unsubmitted work",
    )
    restore = add(
        "restore",
        run_restore,
        "restore a workspace from the trash, or with --site from its copy there",
        *(one, asking),
    )
    restore.add_argument("--site", type=word, help="the site of the copy")
    restore.add_argument("--name", type=word, help="the name of the restored one")
    restore.add_argument(
        "--original-is-stopped",
        action="store_true",
        help="an administrator confirms that nobody works in the original",
    )
    copies = add("copies", run_copies, "list copies of workspaces at other sites")
    copies.add_argument("workspace", nargs="?", type=word, help="name or ID")
    copy = add(
        "copy",
        run_copy,
        "transfer what changed in a workspace to its copy at another site",
        *(one, asking),
    )
    copy.add_argument("site", type=word, help="the site of the copy")
    split = add(
        "split",
        run_split,
        "make a workspace independent of its snapshot",
        *(one, asking),
    )
    instead = split.add_mutually_exclusive_group()
    instead.add_argument(
        "--preview", action="store_true", help="say what it would copy and free"
    )
    instead.add_argument("--stop", action="store_true", help="stop it")
    clone = add(
        "clone",
        run_clone,
        "clone a workspace as it is now, or as of a snapshot",
        *(one, asking),
    )
    clone.add_argument("--snapshot", metavar="ID", type=int, help="a snapshot of it")
    clone.add_argument("--name", type=word, help="the name of the clone")
    clone.add_argument(
        "--for", dest="owner", metavar="USER", type=word, help="who gets it"
    )
    as_of = Parser(add_help=False)
    as_of.add_argument(
        "--snapshot", metavar="ID", type=int, help="a snapshot of it (default: newest)"
    )
    add(
        "workspace-snapshots",
        run_workspace_snapshots,
        "list the snapshots of a workspace",
        one,
    )
    add(
        "compare",
        run_compare,
        "list what changed in a workspace since a snapshot",
        *(one, as_of, asking),
    )
    back = add(
        "take-back",
        run_take_back,
        "copy a file or directory from a snapshot into its workspace again",
        *(one, as_of, asking),
    )
    back.add_argument("path", type=word, help="from the root of the workspace")
    to_snapshot = add(
        "restore-snapshot",
        run_restore_snapshot,
        "restore a workspace to one of its snapshots, in place",
        *(one, asking),
    )
    to_snapshot.add_argument(
        "--snapshot", metavar="ID", type=int, required=True, help="a snapshot of it"
    )
    rescue = add("rescue", run_rescue, "list or download rescued work", one)
    rescue.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=word,
        help="write the archive (tar) to this file; - is standard output",
    )
    rescue.add_argument("--id", type=int, help="ID of an earlier rescue")
    bisect = add(
        "bisect",
        run_bisect,
        "search for the first bad change, or give a verdict",
        *(at_site, asking),
    )
    bisect.add_argument(
        "what",
        type=word,
        help="a template to start with, or one of good, bad, skip, again, stop and "
        "show, followed by an ID",
    )
    bisect.add_argument("id", nargs="?", type=int, help="ID of the bisection")
    bisect.add_argument(
        "--good", metavar="CHANGE", type=int, help="a change where it worked"
    )
    bisect.add_argument(
        "--bad", metavar="CHANGE", type=int, help="a later change where it fails"
    )
    bisect.add_argument(
        "--run",
        dest="command",
        metavar="COMMAND",
        default="",
        help="command whose exit code decides: 0 good, 125 skip, 1 to 127 bad",
    )
    logs = add("logs", run_logs, "print the log of an operation", at_site)
    logs.add_argument("workspace", nargs="?", type=word, help="name or ID")
    logs.add_argument(
        "--template", type=word, help="log of the newest build of this template"
    )
    logs.add_argument(
        "--operation", metavar="ID", type=int, help="log of this operation"
    )
    logs.add_argument(
        "--step", type=word, help="such as build (default: the current step)"
    )
    logs.add_argument(
        "-f",
        "--follow",
        action="store_true",
        help="follow until it ends; the exit code is its result",
    )
    logs.add_argument("--all", action="store_true", help="from the beginning")
    opening = add("open", run_open, "open a page of Cloneyard in the browser", at_site)
    opening.add_argument("workspace", nargs="?", type=word, help="name or ID")
    opening.add_argument("--template", type=word, help="page of a template")
    add("sites", run_sites, "list sites")
    dedupe = add(
        "dedupe-plans",
        run_dedupe_plans,
        "list plans of deduplication, or switch that of a site (administrators)",
        switching(),
    )
    dedupe.add_argument("site", nargs="?", type=word, help="name")
    add("sandboxes", run_sandboxes, "list sandboxes of Perforce servers")
    sandbox = add(
        "sandbox",
        run_sandbox,
        "create, show, extend, start, retry or retire a sandbox of a Perforce server",
        asking,
    )
    sandbox.add_argument(
        "what",
        choices=["create", "show", "extend", "start", "retry", "retire"],
        metavar="WHAT",
        help="create, show, extend, start (again), retry, retire",
    )
    sandbox.add_argument("sandbox", metavar="NAME", type=word, help="its name")
    sandbox.add_argument(
        "--of", metavar="SERVER", type=word, help="what it is a copy of"
    )
    sandbox.add_argument(
        "--version", metavar="RELEASE", type=word, help="of p4d, such as 2024.2"
    )
    sandbox.add_argument("--host", type=word, help="where its server runs")
    sandbox.add_argument(
        "--purpose", choices=["patch", "diagnose", "upgrade"], default="diagnose"
    )
    sandbox.add_argument(
        "--hours", metavar="N", type=int, default=8, help="how long, from now"
    )
    sandbox.add_argument("--reason", default="", help="such as a support case")
    sandbox.add_argument(
        "--port", metavar="N", type=int, help="at its host; otherwise the next free one"
    )
    sandbox.add_argument(
        "--server-id", metavar="ID", type=word, help="otherwise sandbox-NAME"
    )
    sandbox.add_argument(
        "--without-host",
        action="store_true",
        help="retire: do not wait for a host that does not answer",
    )
    add_recipe_commands(add, asking)
    add_qualification_commands(add, asking)
    policies = add(
        "snapshot-policies",
        run_snapshot_policies,
        "list, set or delete policies for snapshots of workspaces (administrators)",
    )
    policies.add_argument("site", nargs="?", type=word, help="whose policies")
    policies.add_argument("--template", type=word, help="name or ID (default: all)")
    policies.add_argument("--purpose", type=word, help="(default: all)")
    policies.add_argument("--hourly", metavar="N", type=int, help="how many are kept")
    policies.add_argument("--daily", metavar="N", type=int, help="how many are kept")
    policies.add_argument(
        "--max-percent",
        metavar="N",
        type=int,
        help="how much of a workspace's volume they may hold (0: no limit)",
    )
    policies.add_argument("--delete", metavar="ID", type=int, help="delete a policy")
    processes = add(
        "processes",
        run_processes,
        "list processes of Perforce servers, or end one (administrators)",
    )
    processes.add_argument("--of", metavar="SERVER", type=word, help="name of a server")
    processes.add_argument("--user", type=word, help="whose")
    processes.add_argument(
        "--at-least",
        metavar="SPAN",
        type=span,
        help="running at least this long, such as 30m",
    )
    processes.add_argument("--end", metavar="ID", type=int, help="end one")
    upload_log = add(
        "upload-log",
        run_upload_log,
        "send a log of a Perforce server, and have it read (administrators)",
        asking,
    )
    upload_log.add_argument("of", metavar="SERVER", type=word, help="name of a server")
    upload_log.add_argument("file", metavar="FILE", help="P4LOG, or a .gz of it")
    completion = add(
        "completion", run_completion, "print a completion script for a shell"
    )
    completion.add_argument("shell", choices=sorted(SHELLS))
    # Shells call it.
    complete = verbs.add_parser("complete", add_help=False)
    complete.add_argument("words", nargs="*")
    complete.set_defaults(run=run_complete)
    templates = add("templates", run_templates, "list templates")
    templates.add_argument("--archived", action="store_true", help="archived ones")
    template = add(
        "template", run_template, "show, change or delete a template", at_site, asking
    )
    template.add_argument(
        "what",
        choices=[
            *("show", "rename", "owner", "archive", "unarchive"),
            *("rollback", "needs", "delete"),
        ],
        metavar="WHAT",
        help="show, rename, owner, archive, unarchive, delete; needs lists what "
        "prevents a delete; rollback holds the last good snapshot before a failed "
        "build",
    )
    template.add_argument("template", type=word, help="name or ID")
    template.add_argument(
        "value", nargs="?", help="new title, or username of the owner"
    )
    template.add_argument(
        "--reason", default="", help="shown to people: why it is archived"
    )
    template.add_argument(
        "--build", metavar="ID", type=int, help="the build to roll back"
    )
    mirrors = add(
        "mirrors",
        run_mirrors,
        "list mirrors, or transfer a snapshot to one",
        *(at_site, asking),
    )
    mirrors.add_argument(
        "about",
        nargs="?",
        type=word,
        metavar="TEMPLATE|transfer",
        help="list those of a template; transfer is followed by TEMPLATE and SITE",
    )
    mirrors.add_argument("template", nargs="?", type=word, help="name or ID")
    mirrors.add_argument(
        "to", nargs="?", type=word, metavar="SITE", help="the site of the mirror"
    )
    mirrors.add_argument(
        "--snapshot",
        metavar="NAME",
        type=word,
        help="name or ID (default: the template's default snapshot)",
    )
    snapshots = add("snapshots", run_snapshots, "list a template's snapshots", at_site)
    snapshots.add_argument("template", type=word, help="name or ID")
    snapshot = add(
        "snapshot", run_snapshot, "show, hold, release or withdraw a snapshot"
    )
    snapshot.add_argument(
        "what",
        choices=["show", "use", "release", "withdraw", "label", "notes"],
        metavar="WHAT",
        help="show; use holds it as the default until release; withdraw keeps "
        "it from new workspaces; label, notes",
    )
    snapshot.add_argument("id", type=int, help="ID of the snapshot")
    snapshot.add_argument("text", nargs="?", help="text of the label or notes")
    snapshot.add_argument("--reason", default="", help="shown to people: why")
    return parser


def version_text() -> str:
    return f"cloneyard {VERSION or '(not served)'} of {SERVER or 'no server'}"


def main(argv: list[str]) -> int:
    """Run one command; return its exit code."""
    is_json = "--json" in argv
    try:
        args = make_parser().parse_args(argv)
        if is_json and getattr(args, "export", False):
            raise Stop(USAGE, "Choose --json or --export, one of the two.")
        args.run(args)
        sys.stdout.flush()
    except Stop as stop:
        tell(str(stop))
        if is_json:
            print_json(stop.body)
        return stop.exit_code
    except KeyboardInterrupt:
        tell("Interrupted. The server continues: “cloneyard list” shows it.")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; Python would complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (EOFError, OSError) as error:
        tell(f"{error or 'The terminal has gone'}.")
        return FAILED
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        tell(
            f"This answer of the server was not understood ({error!r}). Download "
            "“cloneyard” from it again: the server may be newer."
        )
        return FAILED
    return DONE


if __name__ == "__main__":
    # Paths and names are UTF-8, whatever the terminal thinks.
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:]))
