"""Plays p4 at somebody's shell, with a broker behind it whose filter is ours.

Perforce's own programs are not in any package. `p4 login -a -p` gets its ticket by
Perforce's client library; any other command goes to the filter as a broker gives it.

Source: p4 login and the global option -x in the Command Reference; "Broker filter
programs" in the Administrator's Guide.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.broker import ONE_ANSWER, said_by_broker, ticket_at

LOGIN = ["login", "-a", "-p"]


def main(words: list[str]) -> None:
    user = os.environ["P4USER"]
    if words == LOGIN:
        password = sys.stdin.readline().rstrip("\n")
        ticket = ticket_at(os.environ["P4PORT"], user, password=password)
        print(f"Enter password: \n{ticket}")
        return
    match words:
        case ["-x", file, "flex", *asked]:
            asked += Path(file).read_text().splitlines()
        case ["flex", *asked]:
            pass
        case _:
            sys.exit(f"p4: {words}?")
    answered = subprocess.run(
        [sys.executable, "-I", os.environ["FILTER"]],
        input=said_by_broker(user, *asked),
        stdout=subprocess.PIPE,
        env={},
        check=True,
    )
    told = ONE_ANSWER.fullmatch(answered.stdout.decode())
    assert told, answered.stdout
    print(told[2])
    sys.exit(told[1] != "RESPOND")
