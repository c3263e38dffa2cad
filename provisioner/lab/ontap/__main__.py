"""``python -m provisioner.lab.ontap --root DIR``: the lab's ONTAP alone.

Prints one JSON line when ready and serves until SIGTERM or SIGINT. The password comes
from ``LAB_ONTAP_PASSWORD`` or from ``DIR/password``, which is created if it is missing.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from provisioner.lab.ontap.array import forget
from provisioner.lab.ontap.config import OntapConfig, Settings
from provisioner.lab.ontap.conventions.values import size
from provisioner.lab.ontap.server import OntapLab


def main() -> int:
    """Serve until told to stop."""
    arguments = _parse()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    if arguments.forget:
        forget(arguments.root)
        return 0
    config = OntapConfig(
        arguments.root,
        host=arguments.host,
        port=arguments.port,
        or_above=arguments.or_above,
        user=arguments.user,
        password=os.environ.get("LAB_ONTAP_PASSWORD"),
        svm=arguments.svm,
        more_svms=tuple(arguments.more_svm),
        aggregate=arguments.aggregate,
        btrfs_bytes=arguments.btrfs,
        volumes=arguments.volumes,
        settings=Settings(schedules=True),
    )
    if arguments.peer_root is not None:
        peer = replace(
            config,
            root=arguments.peer_root,
            port=arguments.peer_port,
            cluster=f"{config.cluster}_peer",
            svm=arguments.peer_svm,
            more_svms=(),
        )
        config = replace(config, peer=peer)
    # Blocked, they wait to be taken below; a handler's flag can be set too early to
    # wake a wait without end. Threads inherit the block, so it comes first.
    stops = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    try:
        lab = OntapLab(config).start()
    except BlockingIOError:
        sys.stderr.write(
            f"Another lab uses {arguments.root}. Stop that one first, or choose "
            "another directory.\n"
        )
        return 1
    try:
        print(json.dumps(lab.describe()), flush=True)
        signal.sigwait(stops)
    finally:
        lab.stop()
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m provisioner.lab.ontap")
    parser.add_argument("--root", type=Path, required=True, help="keeps all state")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument(
        "--or-above", action="store_true", help="where it is taken, the next free one"
    )
    parser.add_argument("--user", default="admin")
    parser.add_argument("--svm", default="svm_dev")
    parser.add_argument("--more-svm", action="append", default=[], metavar="NAME")
    parser.add_argument("--peer-root", type=Path, help="a second cluster, peered")
    parser.add_argument("--peer-port", type=int, default=0)
    parser.add_argument("--peer-svm", default="svm_dr")
    parser.add_argument("--aggregate", default="aggr1")
    parser.add_argument(
        "--btrfs", type=size, metavar="SIZE", help="mount a btrfs image (root only)"
    )
    parser.add_argument("--volumes", type=Path, help="JSON that names volumes to have")
    parser.add_argument("--forget", action="store_true", help="remove the root and end")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
