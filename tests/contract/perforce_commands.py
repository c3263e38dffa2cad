"""Every Perforce command that Cloneyard gives, by the official client.

Run as a program with address, password and a directory of its own: it prints one JSON
line, command -> what was found. `test_lab_perforce_commands.py` runs it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from P4 import P4

FORM = """Client:\t{name}

Owner:\tcloneyard

Root:\t{root}

Options:\tnoallwrite noclobber nocompress unlocked nomodtime normdir

LineEnd:\tlocal

View:
\t//depot/... //{name}/...
"""
CHANGE = "Change:\tnew\n\nClient:\t{name}\n\nDescription:\n\twork\n"


class Commands:
    """The commands in an order in which each has something to do."""

    def __init__(self, port: str, password: str, root: Path) -> None:
        self.found: dict[str, Any] = {}
        self._root = root
        self._p4 = P4()
        self._p4.port, self._p4.user, self._p4.password = port, "cloneyard", password
        self._p4.charset, self._p4.exception_level = "none", 1
        self._p4.client, self._p4.cwd = "ws", str(root)
        self._password = password
        self._p4.connect()

    def run(self, *command: str, text: str = "") -> Any:
        """Give a command; note how many records came, or the lines."""
        if text:
            self._p4.input = text
        answer = self._p4.run(*command)
        texts = [line for line in answer if isinstance(line, str)]
        self.found[" ".join(command)] = texts or len(answer)
        return answer

    def all(self) -> None:
        """Give them all."""
        self._of_servers_and_people()
        self._of_clients()
        number = self._of_pending_work()
        self._of_shelves(number)
        self._p4.disconnect()

    def _of_servers_and_people(self) -> None:
        self.run("info")
        self.run("login", "-s")
        self.run("login", "-p", text=self._password)
        self.run("login", "-p", "cloneyard", text=self._password)
        self.run("users", "cloneyard")
        self.run("protects", "-u", "cloneyard", "-h", "127.0.0.1")
        self._p4.save_group({"Group": "builders", "Users": ["cloneyard"]})
        self.run("groups", "-i", "cloneyard")
        self.run("group", "-o", "builders")
        self._p4.run("configure", "set", "monitor=1")
        self.run("configure", "show", "monitor")
        self.run("monitor", "show", "-a", "-l", "-e")
        self.run("lockstat")
        self.run("logtail", "-b", "256", "-s", "0", "-m", "1")
        self.run("configure", "show")
        self.run("diskspace")
        self.run("license", "-u")
        self.run("client", "-T", "partitioned", "-o", "nobody-yet")

    def _of_clients(self) -> None:
        self.run("client", "-i", text=FORM.format(name="ws", root=self._root))
        for name in ("a", "b", "c"):
            (self._root / name).write_text(f"{name}\n")
        self.run("add", "-f", "-I", "-t", "text", *(str(self._root / x) for x in "abc"))
        self._p4.run("submit", "-d", "first")
        self._p4.run("edit", "a")
        (self._root / "a").write_text("newer\n")
        self._p4.run("submit", "-d", "second")
        self._p4.save_depot({"Depot": "st", "Type": "stream", "Map": "st/..."})
        stream = {"Type": "mainline", "Parent": "none", "Paths": ["share ..."]}
        self._p4.save_stream({**self._p4.fetch_stream("//st/main"), **stream})
        self.run("depots")
        self.run("client", "-S", "//st/main", "-o", "nobody-yet")
        self.run("clients", "-a", "-e", "ws")
        self.run("client", "-o", "ws")
        self.run("changes", "-m", "1", "-s", "submitted", "//ws/...")
        self.run("files", "-e", "//ws/...@1")
        self.run("dirs", "//*@1")
        self.run("sizes", "-s", "//ws/...@1")
        self.run("describe", "-s", "1")
        self.run("sync", "-k", "-q", "//ws/...@0")
        self.run("sync", "-n", "//ws/...@1")
        self.run("sync", "-k", "-q", "//ws/...@1")
        self.run("have")
        self.run("filelog", "//ws/a")
        self.run("where", "//depot/a")
        self.run("verify", "-z", "//depot/...")
        self.run("sync", "-f", "//ws/a#have")
        (self._root / "b").unlink()
        (self._root / "new").write_text("new\n")
        self.run("reconcile", "-n", "-e", "-d", "//ws/...")
        self.run("reconcile", "-n", "-e", "-d", "-a", "-f", "//ws/...")
        self.run("sync", "-f", "//ws/...@1")
        self.run("integrate", "-n", "//ws/a", "//ws/branch/a")
        self.run("integrate", "-v", "//ws/a", "//ws/branch/a")
        self.run("submit", "-d", "branched")

    def _of_pending_work(self) -> str:
        said = self.run("change", "-i", text=CHANGE.format(name="ws"))
        number = str(said[0].split()[1])
        self.run("edit", "-k", "-c", number, "-t", "text+x", "//depot/a")
        self.run("delete", "-k", "-c", number, "//depot/b")
        self._p4.run("edit", "-k", "//depot/c")
        self.run("move", "-k", "-c", number, "//depot/c", "//depot/d")
        self.run("reopen", "-c", "default", "//depot/a")
        self.run("reopen", "-c", number, "-t", "text", "//depot/a")
        self.run("lock", "//depot/a")
        self.run("opened", "-a", "-C", "ws")
        self.run("opened", "-a", "-u", "cloneyard")
        self.run("changes", "-l", "-c", "ws", "-s", "pending")
        self.run("sync", "//depot/a")
        self.run("resolve", "-n", "//ws/...")
        self.run("resolve", "-am", "//ws/...")
        self.run("resolved", "//ws/...")
        return number

    def _of_shelves(self, number: str) -> None:
        (self._root / "c").rename(self._root / "d")
        self.run("shelve", "-c", number)
        self.run("shelve", "-c", number, "-f", "//depot/a")
        self.run("describe", "-S", "-s", number)
        # With -q, as it is given, it would tell only what is damaged.
        self.run("verify", "-S", "//depot/...")
        self.run("revert", "-k", "-C", "ws", "//...")
        self._p4.run("change", "-i", input=CHANGE.format(name="ws"))
        self.run("unshelve", "-s", number, "-f", "-c", str(int(number) + 1))
        self._p4.run("revert", "-k", "//ws/...")
        self.run("shelve", "-d", "-f", "-c", number)
        self.run("change", "-d", "-f", number)
        self.run("change", "-d", "-f", str(int(number) + 1))
        self.run("client", "-d", "-f", "ws")


if __name__ == "__main__":
    commands = Commands(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
    commands.all()
    print(json.dumps(commands.found))
