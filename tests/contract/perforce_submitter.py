"""Many people who submit at once, each a process: forks of this program.

Standard input has a JSON list, for each of them: port, password, client, root, depot
directory, number of own changes. Each adds and edits a file of its own, and adds one to
the shared counter, trying again for as long as others are faster. Prints how often that
was, a line for each; ends with how many of them failed.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from P4 import P4, P4Exception


def main() -> None:
    """Start everybody, and wait for them."""
    people = [start(arguments) for arguments in json.load(sys.stdin)]
    sys.exit(sum(os.waitpid(pid, 0)[1] != 0 for pid in people))


def start(arguments: list[str]) -> int:
    """Fork one person; return their process."""
    pid = os.fork()
    if pid == 0:
        submit(*arguments)
        sys.exit()
    return pid


def submit(
    port: str, password: str, name: str, root: str, depot: str, changes: str
) -> None:
    """Do one person's work."""
    p4 = P4()
    p4.port, p4.client, p4.user, p4.password = port, name, "cloneyard", password
    p4.charset, p4.exception_level, p4.cwd = "none", 1, root
    p4.connect()
    form = p4.fetch_client()
    form["Root"], form["Host"] = root, ""
    form["View"] = [f"{depot}/... //{name}/..."]
    p4.save_client(form)
    own = Path(root, f"{name}.txt")
    own.write_text("0\n")
    p4.run("add", str(own))
    p4.run("submit", "-d", f"{name} 0")
    for number in range(1, int(changes)):
        p4.run("edit", str(own))
        own.write_text(f"{number}\n")
        p4.run("submit", "-d", f"{name} {number}")
    tries = add_one(p4, Path(root, "counter"))
    os.write(1, f"{tries}\n".encode())  # in one piece, whoever else writes
    p4.disconnect()


def add_one(p4: P4, counter: Path) -> int:
    """Add one to the shared counter; return how many tries it took."""
    tries = 0
    while True:
        tries += 1
        p4.run("sync", str(counter))
        p4.run("edit", str(counter))
        counter.write_text(f"{int(counter.read_text()) + 1}\n")
        try:
            p4.run("submit", "-d", "one more", str(counter))
        except P4Exception as error:
            if "fix problems above" not in str(error):
                raise
            change = p4.run("opened", str(counter))[0]["change"]
            p4.run("revert", str(counter))
            p4.run("change", "-d", change)
        else:
            return tries


if __name__ == "__main__":
    main()
