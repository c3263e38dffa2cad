"""From a request to READY on the lab, at zero latency: what the engine adds to it.

Prints a JSON line per figure. `overhead` is the time to READY less the longest branch
of steps; the worker, the web server and the lab run as in `make demo`.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

ROUNDS = 20
SITE = Path(__file__).resolve().parents[1]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="cloneyard-bench-", dir="/var/tmp") as var:
        Path(var).chmod(0o755)
        os.environ |= {
            "VAR_DIR": var,
            "DJANGO_SETTINGS_MODULE": "provisioner.settings",
            "LOG_LEVEL": "WARNING",
        }
        sys.path.insert(0, str(SITE))
        import django

        django.setup()
        _measure()


def _measure() -> None:
    from provisioner.demo.run import Demo, DemoOptions

    options = DemoOptions(source=None, build="", ignore="", btrfs="")
    with Demo(options, say=lambda line: None) as demo:
        site = demo.start()
        template, built = demo.build_template(site, name=demo.fill_depot())
        made, retired = [], []
        for _ in range(ROUNDS):
            workspace, figures = demo.provision(template)
            made.append(figures)
            retired.append(demo.retire(workspace)["seconds"])
    ready = [figures["ready_seconds"] for figures in made]
    work = [figures["longest_branch_seconds"] for figures in made]
    overhead = [r - w for r, w in zip(ready, work, strict=True)]
    _print("template_build", [sum(step["seconds"] for step in built["steps"])])
    _print("ready", ready)
    _print("longest_branch", work)
    _print("overhead", overhead)
    _print("retire", retired)


def _print(figure: str, seconds: list[float]) -> None:
    print(
        json.dumps(
            {
                "benchmark": "main_job",
                "figure": figure,
                "unit": "s",
                "rounds": len(seconds),
                "median": round(statistics.median(seconds), 3),
                "min": round(min(seconds), 3),
                "max": round(max(seconds), 3),
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
