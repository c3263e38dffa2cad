"""From a request to READY on the lab, at zero latency: what the engine adds to it.

Prints a JSON line per figure. `overhead` is the time to READY less the longest branch
of steps; the worker, the web server and the lab run as in `make demo`.
"""

from __future__ import annotations

import json
import os
import statistics

from shared.places import place_of_its_own

ROUNDS = 20


def main() -> None:
    place_of_its_own()
    os.environ["LOG_LEVEL"] = "WARNING"
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
