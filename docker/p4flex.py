#!/usr/bin/python3 -I
"""“p4 flex”: what a Perforce broker runs for it. One file, Python 3.9 or newer.

The broker writes who asks and with which arguments to standard input, and reads what
to tell them from standard output (docs/flex.md says how to set it up). The verbs are
those of P4Flex; each is a call or two of Cloneyard's API.

Who asks is proven by their Perforce ticket, sent with each command. The broker cannot
prove it: of the caller it hands on names alone (brokerListenPort, brokerTargetPort,
command, clientProg, clientVersion, clientProtocol, apiProtocol, workspace, user,
clientIp, clientHost, cwd, clientPort, argCount, Arg0 …), and `user` is whatever `p4 -u`
said. It has no ticket that it could hand on: Perforce's protocol sends answers to
challenges instead. So callers send one, by `p4 -x FILE`, which reads arguments from a
file, so that none is in a list of processes. Cloneyard asks the Perforce server
whether it is one of `user`; that makes a token for minutes. Nothing is kept here.

Source: “Filter programs” and “Command handler specifications” in the chapter on the
broker, https://help.perforce.com/helix-core/server-apps/p4sag/current/Content/P4SAG/chapter.broker.html;
the fields as https://github.com/brettbates/p4broker-reader recorded them from release
2020.2; the verbs, https://github.com/mjmotojohnson/P4Flex; -x, “Global options” of the
P4 command reference.
"""

from __future__ import annotations

import contextlib
import getopt
import http.client
import ipaddress
import json
import os
import re
import ssl
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

ANSWER_WITHIN_SECONDS = 1.7
GIVE_UP_SECONDS = 10  # later than any answer: main speaks up in time
HOLD_SECONDS = 1  # how long an answer is held to see whether the work is done
LONGEST_REQUEST = 1 << 20
LONGEST_MESSAGE = 8000
ROWS = 40

Json = dict[str, Any]
Options = dict[str, list[str]]

HELP = """\
Built Perforce workspaces in seconds. Add "-t TICKET" to each command, best by
"p4 -x FILE flex ..." where FILE has -t and your ticket on a line each.

  p4 flex volumes                            templates (also: lv, list_volumes)
  p4 flex snapshots [-V volume]              what workspaces are cloned from (ls)
  p4 flex clones [-V volume] [-u owner] [-a] your workspaces; -a: all you may see (lc)
  p4 flex clone -V volume [-S snapshot] [-p purpose] [-l hours] [name]
                                             get a workspace
  p4 flex clone -d name [-r | -f] [-u owner] give it back; work that is not submitted
                                             stops that: -r rescues it, -f discards it
for administrators:
  p4 flex volume -s size[M,G,T] [-v view]... [-P stream] [-b command] name
                                             define a template
  p4 flex snapshot -V volume [-c change]     build it and publish a snapshot

-i site chooses among volumes, or clones, of the same name. Purposes: development,
build, ci, ci-edit."""
NO_TICKET = """\
Who are you? Send a Perforce ticket that is good on all hosts with each command:
  (umask 077; printf -- '-t\\n%s\\n' $(p4 login -a -p | tail -n 1) > ~/.p4flex)
  p4 -x ~/.p4flex flex clones
The first line asks for your password without showing that it does."""


class Refusal(Exception):
    """Why there is nothing to do: a sentence for the caller."""


# --- what the broker says


def read_request(raw: bytes) -> tuple[str, str, list[str]]:
    """Return who asks, by their own word, from which address, and the arguments.

    Names end at the first colon; values may hold any. Only arguments have to be text.

    Raises: Refusal where it is not as a broker writes it, as with a line break in an
    argument: one could look like a field.
    """
    fields: dict[str, str] = {}
    for line in raw.decode("utf-8", "surrogateescape").split("\n"):
        name, colon, value = line.rstrip("\r").partition(":")
        if not line.strip():
            continue
        if not colon or not re.fullmatch(r"[A-Za-z][A-Za-z0-9.]*", name):
            raise Refusal("Arguments have no line breaks.")
        if name in fields:
            raise Refusal(f"The field {name} came twice.")
        fields[name] = value[1:] if value.startswith(" ") else value
    numbered = [name for name in fields if re.fullmatch(r"Arg[0-9]+", name)]
    args = [fields.get(f"Arg{number}") for number in range(len(numbered))]
    if fields.get("argCount") != str(len(args)) or None in args:
        raise Refusal("The arguments are not complete.")
    words = [str(word) for word in args]
    user = fields.get("user", "")
    if not user or not all(word.isprintable() for word in [user, *words]):
        raise Refusal("Arguments are printable UTF-8.")
    return user, as_address(fields.get("clientIp", "")), words


def as_address(text: str) -> str:
    """Return an IP address, "" for anything else."""
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        return ""


def as_message(text: str) -> str:
    """Return text as it can stand between the quotes of a broker's message."""
    one_quote = text.replace('"', "'").replace("\\", "/")
    clean = "".join(c if c.isprintable() or c == "\n" else "?" for c in one_quote)
    return clean[:LONGEST_MESSAGE].rstrip()


def answer(action: str, text: str) -> None:
    """Write the one answer that the broker waits for, and end this process.

    It does not wait for the thread that is late.
    """
    reply = f'action: {action}\nmessage: "{as_message(text)}"\n'
    sys.stdout.buffer.write(reply.encode())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


# --- Cloneyard


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A ticket goes to the server that was named, and to no other."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def read_config(path: Path) -> dict[str, str]:
    """Return the NAME=VALUE lines beside this script.

    Raises: Refusal where there is no address, or secrets would go in the open.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise Refusal(f"The broker's p4flex.conf cannot be read ({error}).") from None
    pairs = [line.partition("=") for line in lines if not line.startswith("#")]
    config = {name.strip(): value.strip() for name, _, value in pairs}
    parts = urlsplit(config.get("SERVER", ""))
    is_secret = parts.scheme == "https" or is_this_machine(parts.hostname or "")
    if parts.scheme not in ("http", "https") or not is_secret:
        raise Refusal("SERVER in the broker's p4flex.conf has to be https://HOST.")
    return {**config, "SERVER": config["SERVER"].rstrip("/")}


def is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Cloneyard:
    """The API, as one person, for as long as there is time."""

    def __init__(self, config: dict[str, str], *, caller: str, ends: float) -> None:
        self.address = config["SERVER"]
        self._caller = caller
        self._perforce = config.get("PERFORCE", "")
        self._ends = ends
        self._token = ""
        self.user = ""
        handlers: list[Any] = [NoRedirect, urllib.request.ProxyHandler({})]
        if self.address.startswith("https:"):
            trusted = ssl.create_default_context(cafile=config.get("CA_FILE") or None)
            handlers.append(urllib.request.HTTPSHandler(context=trusted))
        self._opener = urllib.request.build_opener(*handlers)

    @property
    def seconds_left(self) -> float:
        return self._ends - time.monotonic()

    def sign_in(self, p4_user: str, ticket: str) -> None:
        """Prove who asks.

        Raises: Refusal, with what the server says.
        """
        proof = {"p4_user": p4_user, "ticket": ticket, "server": self._perforce}
        made = self.ask("POST", "tokens/perforce", body=proof)
        self._token, self.user = made["token"], made["owner"]

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: Json | None = None,
    ) -> Any:
        """Return the answer of one request.

        Raises: Refusal.
        """
        url = f"{self.address}/api/v1/{path}"
        url += f"?{urlencode(query)}" if query else ""
        headers = {"Accept": "application/json", "User-Agent": "p4flex"}
        if self._caller:
            # Heeded where Cloneyard trusts this host (TRUSTED_BROKERS).
            headers["X-Broker-Client-IP"] = self._caller
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(  # noqa: S310 - http(s), see read_config
            url, data=data, headers=headers, method=method
        )
        try:
            with self._opener.open(request, timeout=GIVE_UP_SECONDS) as got:
                return json.load(got)
        except urllib.error.HTTPError as error:
            raise Refusal(self._sentence(error)) from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            sentence = f"{self.address} does not answer ({reason})."
            if self._token and method != "GET":
                sentence += f" It may have been done: {self.page('')}"
            raise Refusal(sentence) from None

    def _sentence(self, error: urllib.error.HTTPError) -> str:
        try:
            return str(json.load(error)["detail"])
        except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
            return f"{self.address} answers {error.code}, but not as Cloneyard does."

    def page(self, path: str) -> str:
        return f"{self.address}/{path}"

    def the_one(self, path: str, *, word: str, query: Mapping[str, str]) -> Json:
        """Return the one thing that is meant.

        Raises: Refusal where there is none, or more than one.
        """
        found = self.ask("GET", path, query=query)["results"]
        if not found:
            raise Refusal(f"There is no {word} {query['name']} for you.")
        if len(found) > 1:
            sites = ", ".join(thing["site"] for thing in found)
            raise Refusal(f"{query['name']} is at {sites}: say which with -i.")
        return dict(found[0])


# --- verbs: each returns what to tell, and may tell something for the meantime


Tell = Callable[[str, str], None]


def list_volumes(
    yard: Cloneyard, options: Options, words: list[str], tell: Tell
) -> str:
    none_but(words, 0)
    rows = [
        [
            t["name"],
            t["site"],
            t["state"],
            f"@{(t['snapshot'] or {}).get('change', '-')}",
        ]
        for t in yard.ask("GET", "templates")["results"]
    ]
    return table(
        ["VOLUME", "SITE", "STATE", "CHANGE"], rows, more=yard.page("templates/")
    )


def list_snapshots(
    yard: Cloneyard, options: Options, words: list[str], tell: Tell
) -> str:
    none_but(words, 0)
    wanted = {"template": only(options, "V")} if "V" in options else {}
    names = {
        template["id"]: template["name"]
        for template in yard.ask("GET", "templates", query={"limit": 200})["results"]
    }
    rows = [
        [names.get(s["template"], "?"), s["name"], f"@{s['change']}", s["quality"]]
        for s in yard.ask("GET", "snapshots", query=wanted)["results"]
    ]
    more = yard.page("templates/")
    return table(["VOLUME", "SNAPSHOT", "CHANGE", "QUALITY"], rows, more=more)


def list_clones(yard: Cloneyard, options: Options, words: list[str], tell: Tell) -> str:
    none_but(words, 0)
    wanted = {"retired": "false"}
    if "V" in options:
        wanted["template"] = only(options, "V")
    if "a" not in options:
        wanted["owner"] = only(options, "u") or yard.user
    rows = [
        [
            w["name"],
            w["owner"],
            w["state"],
            w["template"],
            w["client"] or "-",
            w["path"],
        ]
        for w in yard.ask("GET", "workspaces", query=wanted)["results"]
    ]
    titles = ["CLONE", "OWNER", "STATE", "VOLUME", "CLIENT", "PATH"]
    return table(titles, rows, more=yard.page(""))


def clone(yard: Cloneyard, options: Options, words: list[str], tell: Tell) -> str:
    if "d" in options:
        return delete_clone(yard, options, words, tell)
    none_but(words, 1)
    if "V" not in options:
        raise Refusal("Of which volume? p4 flex clone -V VOLUME [NAME].")
    if only(options, "u") not in ("", yard.user):
        raise Refusal("Everybody gets their own clones: leave -u out.")
    hours = only(options, "l")
    if hours and not re.fullmatch(r"[0-9]{1,5}", hours):
        raise Refusal("-l takes hours, such as 8.")
    asked = {
        "template": id_or_name(only(options, "V")),
        "snapshot": id_or_name(only(options, "S")),
        "site": only(options, "i"),
        "purpose": only(options, "p"),
        "lease": int(hours) * 3600 if hours else "",
        "name": words[0] if words else "",
    }
    body = {key: value for key, value in asked.items() if value != ""}
    tell("REJECT", f"No answer yet. If it is being made, it is here: {yard.page('')}")
    made = yard.ask("POST", "workspaces", body=body)
    tell("RESPOND", clone_text(yard, made))
    if yard.seconds_left > HOLD_SECONDS:
        with contextlib.suppress(Refusal):
            path = f"workspaces/{int(made['id'])}"
            made = yard.ask("GET", path, query={"wait": HOLD_SECONDS})
    return clone_text(yard, made)


def clone_text(yard: Cloneyard, workspace: Json) -> str:
    name = workspace["name"]
    link = yard.page(f"workspaces/{int(workspace['id'])}/")
    if workspace["state"] == "failed":
        raise Refusal(f"{name} failed: {workspace['status_message']} {link}")
    is_ready = workspace["state"] == "ready"
    said = f"{name} is ready." if is_ready else f"{name} is being made: {link}"
    client = workspace["client"]
    setting = f"export P4CLIENT={client}; " if client else ""
    when = "" if is_ready else "When it is ready:\n"
    return f"{said}\n{when}{setting}cd {workspace['path']}"


def delete_clone(
    yard: Cloneyard, options: Options, words: list[str], tell: Tell
) -> str:
    none_but(words, 0)
    if "r" in options and "f" in options:
        raise Refusal("Choose -r or -f.")
    owner = only(options, "u") or yard.user
    wanted = {
        "name": only(options, "d"),
        "owner": owner,
        "retired": "false",
        **site_meant(options),
    }
    found = yard.the_one("workspaces", word="clone", query=wanted)
    unsubmitted = (
        "rescue" if "r" in options else "discard" if "f" in options else "refuse"
    )
    path = f"workspaces/{int(found['id'])}"
    tell("REJECT", f"No answer yet. Whether it goes is here: {yard.page(path)}/")
    gone = yard.ask("DELETE", path, query={"unsubmitted": unsubmitted})
    said = f"{gone['name']} is being given back: {yard.page(path)}/"
    if unsubmitted == "refuse":
        said += "\nWork that is not submitted stops that, and is listed there."
    return said


def volume(yard: Cloneyard, options: Options, words: list[str], tell: Tell) -> str:
    if "d" in options:
        raise Refusal("Cloneyard keeps templates: workspaces may come back to them.")
    none_but(words, 1)
    size = re.fullmatch(r"([0-9]{1,9})([MGT])", only(options, "s"))
    if not words or not size:
        raise Refusal("p4 flex volume -s SIZE[M,G,T] -v VIEW NAME")
    factor = {"M": 2**20, "G": 2**30, "T": 2**40}[size[2]]
    body = {
        "name": words[0],
        "site": only(options, "i") or the_site(yard),
        "view": "\n".join(options.get("v", [])),
        "stream": only(options, "P"),
        "build_command": only(options, "b"),
        "volume_size_bytes": int(size[1]) * factor,
    }
    made = yard.ask(
        "POST", "templates", body={key: value for key, value in body.items() if value}
    )
    link = yard.page(f"templates/{int(made['id'])}/")
    return f"{made['name']} is defined: {link}\np4 flex snapshot -V {made['name']}"


def the_site(yard: Cloneyard) -> str:
    sites = {template["site"] for template in yard.ask("GET", "templates")["results"]}
    if len(sites) != 1:
        raise Refusal("At which site? Say it with -i.")
    return str(sites.pop())


def snapshot(yard: Cloneyard, options: Options, words: list[str], tell: Tell) -> str:
    if "d" in options:
        raise Refusal("Snapshots go by themselves once nothing needs them.")
    none_but(words, 1)
    change = only(options, "c")
    if "V" not in options or not re.fullmatch(r"[0-9]{0,10}", change):
        raise Refusal("p4 flex snapshot -V VOLUME [-c CHANGE]")
    query = {"name": only(options, "V"), **site_meant(options)}
    wanted = yard.the_one("templates", word="volume", query=query)
    body = {"change": int(change)} if change else {}
    path = f"templates/{int(wanted['id'])}"
    tell("REJECT", f"No answer yet. Whether it is built is here: {yard.page(path)}/")
    built = yard.ask("POST", f"{path}/build", body=body)
    link = yard.page(f"operations/{int(built['id'])}/")
    said = f"{wanted['name']} is being built: {link}"
    return f"{said}\nIts snapshot gets its name from Cloneyard." if words else said


VERBS: dict[str, tuple[Callable[..., str], str]] = {
    **dict.fromkeys(("volumes", "list_volumes", "lv"), (list_volumes, "")),
    **dict.fromkeys(("snapshots", "list_snapshots", "ls"), (list_snapshots, "V:")),
    **dict.fromkeys(("clones", "list_clones", "lc"), (list_clones, "V:u:a")),
    "clone": (clone, "V:S:u:p:l:i:d:rf"),
    "volume": (volume, "s:v:P:b:i:d:"),
    "snapshot": (snapshot, "V:c:i:d:"),
}


# --- arguments and tables


def only(options: Options, letter: str) -> str:
    """Return an option's value, "" where it is not given.

    Raises: Refusal where it is given twice.
    """
    given = options.get(letter, [""])
    if len(given) > 1:
        raise Refusal(f"-{letter} is there twice.")
    return given[0]


def site_meant(options: Options) -> dict[str, str]:
    """Return the part of a query that names a site, nothing where none is named."""
    return {"site": only(options, "i")} if "i" in options else {}


def none_but(words: list[str], most: int) -> None:
    if len(words) > most:
        raise Refusal(f"What is {words[most]} for? p4 flex help")


def id_or_name(text: str) -> Any:
    is_id = text.isascii() and text.isdecimal() and len(text) < 16
    return int(text) if is_id else text


def table(titles: list[str], rows: list[list[str]], *, more: str) -> str:
    if not rows:
        return "None."
    shown = [titles, *rows[:ROWS]]
    widths = [max(len(row[column]) for row in shown) for column in range(len(titles))]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in shown]
    return "\n".join([*lines, *([f"... and more: {more}"] if len(rows) > ROWS else [])])


# --- a run


def run(raw: bytes, *, ends: float, tell: Tell) -> str:
    """Do what was asked for and return what to say.

    Raises: Refusal.
    """
    user, caller, args = read_request(raw)
    verb = args[0] if args else "help"
    if verb == "help":
        return HELP
    if verb not in VERBS:
        raise Refusal(f"There is no p4 flex {verb}. p4 flex help")
    act, letters = VERBS[verb]
    try:
        pairs, words = getopt.gnu_getopt(args[1:], f"{letters}t:")
    except getopt.GetoptError as error:
        raise Refusal(f"{error}. p4 flex help") from None
    options: Options = {}
    for flag, value in pairs:
        options.setdefault(flag[1:], []).append(value)
    ticket = only(options, "t")
    if not ticket:
        raise Refusal(NO_TICKET)
    if not re.fullmatch(r"[0-9A-Fa-f]{32,128}", ticket):
        raise Refusal(f"What follows -t is no ticket.\n{NO_TICKET}")
    config = read_config(Path(__file__).resolve().with_name("p4flex.conf"))
    yard = Cloneyard(config, caller=caller, ends=ends)
    tell("REJECT", f"{yard.address} does not answer now: nothing was begun.")
    yard.sign_in(user, ticket)
    return act(yard, options, words, tell)


def main() -> None:
    """Answer in time, whatever is slow: work goes on at the server."""
    ends = time.monotonic() + ANSWER_WITHIN_SECONDS
    meantime = ["REJECT", "The broker did not say what was asked for."]
    outcome: list[str] = []

    def tell(action: str, text: str) -> None:
        meantime[:] = [action, text]

    def work() -> None:
        try:
            raw = sys.stdin.buffer.read(LONGEST_REQUEST)
            outcome[:] = ["RESPOND", run(raw, ends=ends, tell=tell)]
        except Refusal as refusal:
            outcome[:] = ["REJECT", str(refusal)]
        except Exception as error:
            traceback.print_exc()
            outcome[:] = ["REJECT", f"p4 flex failed ({type(error).__name__})."]

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(ends - time.monotonic())
    answer(*(outcome or meantime))


if __name__ == "__main__":
    main()
