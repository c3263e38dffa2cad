"""What host workers do as root, each alone, for a process with few capabilities.

`python -m tests.gateways.hosts.deeds DIRECTORY NAME…` does each in a directory of its
name that `prepare` filled, and says in JSON what went wrong.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from provisioner.gateways.errors import GatewayError
from provisioner.gateways.hosts.build import run_build
from provisioner.gateways.hosts.files import write_as_owner
from provisioner.gateways.hosts.ownership import change_ownership
from provisioner.gateways.hosts.p4d import TAG, P4d
from provisioner.gateways.hosts.removal import remove_contents
from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.hosts.sandbox.bounds import Bounds
from provisioner.gateways.hosts.sandbox.memory import takes_more
from provisioner.gateways.hosts.tree_remarks import remarks_on_tree
from provisioner.gateways.hosts.volume_mounts import VolumeMount
from provisioner.gateways.hosts.writers import find_writers
from tests.gateways.hosts import errand
from tests.gateways.hosts.trees import CHOWN
from tests.support.processes import is_alive

UID, GID = errand.OWNER.uid, errand.OWNER.gid
OTHER = 20003


def prepare(root: Path) -> None:
    """Plant a tree of an owner who lets nobody in, with what needs most rights."""
    root.mkdir()
    (tree := root / "tree").mkdir()
    (closed := tree / "closed").mkdir()
    (closed / "plain").write_text("plain")
    for name, mode in (("set-uid", 0o4755), ("set-gid", 0o2755), ("able", 0o755)):
        (closed / name).touch()
        os.chown(closed / name, UID, GID)
        (closed / name).chmod(mode)
    os.setxattr(closed / "able", "security.capability", CHOWN)
    (sticky := tree / "sticky").mkdir()
    (sticky / "of-another").touch()
    for path in (closed / "plain", sticky / "of-another", sticky, closed, tree):
        os.chown(path, UID, GID)
    sticky.chmod(0o1700)
    closed.chmod(0o700)
    tree.chmod(0o700)
    (root / "mounts").mkdir(mode=0o755)
    (root / "mine").mkdir()
    os.chown(root / "mine", UID, GID)


def give_to_an_owner(root: Path) -> Any:
    report = change_ownership(root / "tree", uid=OTHER, gid=OTHER)
    return [str(failure) for failure in report.failures]


def take_privileges_away(root: Path) -> Any:
    remarks_on_tree(root / "tree")
    closed = root / "tree/closed"
    modes = [(closed / n).stat().st_mode & 0o6000 for n in ("set-uid", "set-gid")]
    return [*filter(None, modes), *os.listxattr(closed / "able")]


def remove_a_tree(root: Path) -> Any:
    remove_contents(root / "tree")
    return [path.name for path in (root / "tree").iterdir()]


def write_beside_an_owner(root: Path) -> Any:
    write_as_owner(root / "tree/closed", ".p4config", "P4PORT=x", uid=UID, gid=GID)
    return []


def work_as_an_owner(root: Path) -> Any:
    found = run_as(errand.OWNER, errand.look_around)
    wanted = {"uids": [UID] * 3, "gids": [GID] * 3, "groups": []}
    return [name for name in wanted if found[name] != wanted[name]]


def end_what_works_as_an_owner(root: Path) -> Any:
    """A stopped one does nothing by itself, and is killed."""
    pids: list[int] = []

    def fail(pid: int) -> None:
        pids.append(pid)
        raise TimeoutError

    with suppress(TimeoutError):
        run_as(errand.OWNER, errand.stop, fail)
    ends = time.monotonic() + 5
    while is_alive(pids[0]) and time.monotonic() < ends:
        time.sleep(0.05)
    return ["it lives"] if is_alive(pids[0]) else []


def run_a_command(root: Path) -> Any:
    result = run_build(
        command=":",
        cwd=root / "mine",
        environment={},
        uid=UID,
        gid=GID,
        timeout_seconds=30,
        log_path=root / "log",
        bounds=Bounds(has_network=False),
    )
    wanted = {"processes", "mounts", "proc", "ipc", "network", "capabilities"}
    return [*(wanted - set(result.in_force)), *([result.exit_code] * result.exit_code)]


def see_other_processes(root: Path) -> Any:
    """Who writes to a tree, and what memory somebody's processes share."""
    program = (
        "import os, time; held = bytearray(64 << 20); os.fork(); "
        f"file = open({str(root / 'mine/file')!r}, 'w'); print('up', flush=True); "
        "time.sleep(60)"
    )
    with subprocess.Popen(
        ["/usr/bin/python3", "-c", program],
        stdout=subprocess.PIPE,
        user=UID,
        group=GID,
        extra_groups=[],
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        for _ in range(2):
            process.stdout.readline()
        group = process.pid
        pids = [int(p.name) for p in Path("/proc").glob("[0-9]*") if _is_of(p, group)]
        wrong = [] if len(list(find_writers(root / "mine"))) == 2 else ["no writers"]
        wrong += ["shared memory counts twice"] if takes_more(100 << 20, pids) else []
        os.killpg(group, 9)
    return wrong


def end_a_server(root: Path) -> Any:
    """A server of a sandbox, which another worker has started."""
    server = P4d(
        program="/bin/true",
        root=root / "mine",
        journal=root / "journal",
        log=root / "log",
        uid=UID,
        gid=GID,
        tag=str(root),
    )
    with subprocess.Popen(
        ["/bin/sleep", "60"],
        env={TAG: server.tag},
        user=UID,
        group=GID,
        extra_groups=[],
    ) as process:
        threading.Thread(target=process.wait, daemon=True).start()
        server.stop()
        runs_on = is_alive(process.pid)
        process.kill()
    return ["it runs on"] if runs_on else []


def _is_of(process: Path, group: int) -> bool:
    with suppress(OSError):
        return os.getpgid(int(process.name)) == group
    return False


def mount_a_volume(root: Path) -> Any:
    volume = VolumeMount(
        source="10.0.0.7:/w-hers",
        directory=root / "mounts/w-hers",
        options="size=1m",
        command=("mount", "-t", "tmpfs"),
        is_lab=True,
    )
    volume.ensure(addresses=list)
    volume.remove()
    return []


DEEDS: tuple[Callable[[Path], Any], ...] = (
    give_to_an_owner,
    take_privileges_away,
    remove_a_tree,
    write_beside_an_owner,
    work_as_an_owner,
    end_what_works_as_an_owner,
    run_a_command,
    see_other_processes,
    mount_a_volume,
    end_a_server,
)


def main(directory: str, *names: str) -> None:
    wrong = {}
    for deed in DEEDS:
        if deed.__name__ in names:
            try:
                wrong[deed.__name__] = deed(Path(directory, deed.__name__))
            except (GatewayError, OSError) as error:
                wrong[deed.__name__] = [str(error)]
    print(json.dumps({name: found for name, found in wrong.items() if found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
