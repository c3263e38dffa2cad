"""Run the lab's Perforce server.

python -m provisioner.lab.perforce -r ROOT [-p [ssl:]HOST:PORT]   TCP until SIGTERM
python -m provisioner.lab.perforce -r ROOT -i                     one connection, fd 0
python -m provisioner.lab.perforce -r ROOT -jr CHECKPOINT         restore, then end
                                       [--depots ARCHIVE]         unpacked before
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import signal
import sys
import tarfile
from dataclasses import asdict
from pathlib import Path

from provisioner.lab.perforce.configurables import DEFAULTS
from provisioner.lab.perforce.database import CaseMismatch
from provisioner.lab.perforce.journal import JournalError
from provisioner.lab.perforce.kinds import KINDS
from provisioner.lab.perforce.restore import restore, unpack
from provisioner.lab.perforce.server import (
    PerforceConfig,
    PerforceLab,
    serve_descriptor,
)
from provisioner.lab.perforce.serverlog import BlockFormatter


def main() -> int:
    """Serve as the arguments say; return the exit status."""
    parser = argparse.ArgumentParser(prog="provisioner.lab.perforce")
    parser.add_argument("-r", dest="root", type=Path, required=True)
    parser.add_argument("-p", dest="port", default="127.0.0.1:0")
    parser.add_argument(
        "--or-above", action="store_true", help="where it is taken, the next free port"
    )
    parser.add_argument("-i", dest="inherited", action="store_true")
    parser.add_argument("-jr", dest="checkpoint", type=Path)
    parser.add_argument(
        "--depots", type=Path, help="tar file or directory that -jr reads files from"
    )
    parser.add_argument("-z", action="store_true", help="compression is found out")
    parser.add_argument(
        "-L", dest="log", type=Path, help="log file, below the root if relative"
    )
    parser.add_argument("-v", dest="verbose", action="append", default=[])
    parser.add_argument("--admin-user", default="cloneyard")
    parser.add_argument("-C1", dest="ignores_case", action="store_true")
    parser.add_argument("--unicode", action="store_true")
    parser.add_argument("--server-id", default="")
    parser.add_argument(
        "--services", default="standard", choices=KINDS, help="needs --server-id"
    )
    parser.add_argument(
        "--replicates", type=Path, metavar="ROOT", help="root of the server it follows"
    )
    parser.add_argument("--target", default="", help="address of that server")
    parser.add_argument("--security", type=int, default=2, choices=range(4))
    options = parser.parse_args()
    if options.services != "standard" and not options.server_id:
        parser.error("--services needs --server-id")
    if options.replicates and options.services in ("standard", "commit-server"):
        parser.error("--replicates needs --services of a replica")
    address = options.port.removeprefix("ssl:")
    host, _, port = address.rpartition(":")
    root = options.root.resolve()
    config = PerforceConfig(
        root=root,
        log=root / options.log if options.log else None,
        host=host.strip("[]") or "127.0.0.1",
        port=int(port),
        or_above=options.or_above,
        admin_user=options.admin_user,
        admin_password=os.environ.get("LAB_P4PASSWD", PerforceConfig.admin_password),
        security_level=options.security,
        ignores_case=options.ignores_case,
        is_unicode=options.unicode,
        server_id=options.server_id,
        services=options.services,
        replicates=options.replicates and options.replicates.resolve(),
        target=options.target,
        is_encrypted=address != options.port,
        configurables={
            name: value
            for name, _, value in (text.partition("=") for text in options.verbose)
            if name in DEFAULTS
        },
    )
    # A flush makes many objects and no cycles; looking for those would cost a third.
    gc.set_threshold(100_000, 50, 100)
    config.root.mkdir(parents=True, exist_ok=True)
    configure_log(
        config.log, is_verbose=any(text.startswith("rpc=") for text in options.verbose)
    )
    if options.checkpoint:
        return _restore(config, options.checkpoint, depots=options.depots)
    if options.inherited:
        return _serve_inherited(config)
    return serve_tcp(config)


def _restore(config: PerforceConfig, checkpoint: Path, *, depots: Path | None) -> int:
    try:
        if depots is not None:
            unpack(depots, root=config.root)
        result = restore(config, checkpoint=checkpoint)
    except (JournalError, OSError, EOFError, tarfile.TarError) as error:
        print(f"{checkpoint}: {error}", file=sys.stderr)
        return 1
    print(json.dumps(asdict(result)))
    return 0


def configure_log(path: Path | None, *, is_verbose: bool = False) -> None:
    """Write the log to a file, or to standard error."""
    # Names that are not UTF-8 are logged as the bytes they came as.
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    if path:
        handler = logging.FileHandler(path, encoding="utf-8", errors="surrogateescape")
    handler.setFormatter(BlockFormatter("%(message)s"))
    logging.basicConfig(
        handlers=[handler], level=logging.DEBUG if is_verbose else logging.INFO
    )


def _serve_inherited(config: PerforceConfig) -> int:
    # The client's terminal sends its signals to us too; and descriptor 1 is the
    # client's socket, so nothing may be printed there.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)
    serve_descriptor(config, descriptor=0)
    return 0


def serve_tcp(config: PerforceConfig) -> int:
    """Serve until SIGTERM; print where, once it listens. Raises: OSError."""
    # Blocked, they wait to be taken below; a handler's flag can be set too early to
    # wake a wait without end. Threads inherit the block, so it comes first.
    stops = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    with PerforceLab(config) as lab:
        ready = {
            "host": config.host,
            "port": lab.port,
            "user": config.admin_user,
            "password": config.admin_password,
            **({"fingerprint": lab.fingerprint} if lab.fingerprint else {}),
        }
        print(json.dumps(ready), flush=True)
        signal.sigwait(stops)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CaseMismatch as error:
        sys.exit(str(error))
