"""What a refresh costs beside the first build: the same template, in one run.

Prints JSON lines. Everything of `make demo` but the web server runs below a directory
that is gone afterwards: the lab, an embedded PostgreSQL, a worker. A depot of 50,000
Python files is built as a template (byte-compiled), ten of them change, and it is
built again. `ratio` is the second build's time by the first one's; `steps` say where
either spent it. REFRESH_BENCH_FILES changes the number, --btrfs SIZE lets the lab
take snapshots as an array does, without copying.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from shared.places import place_of_its_own

FILES = int(os.environ.get("REFRESH_BENCH_FILES", "50000"))
CHANGED = 10
PER_DIRECTORY = 100
MOST = 0.10
LINES = 30


def main() -> None:
    """Measure in a directory of our own, and remove it however that ends."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--btrfs", default="", help="size of the lab's image, 8G")
    asked = options.parse_args()
    place = place_of_its_own("refresh")
    import django

    django.setup()
    measure(place, btrfs=asked.btrfs)


def measure(place: Path, *, btrfs: str) -> None:
    """Build, change ten files, build again; say what each took."""
    from provisioner.demo.run import Demo, DemoOptions

    source = place / "tree"
    write_tree(source)
    options = DemoOptions(source=source, build="", ignore="", btrfs=btrfs)
    with Demo(options, say=lambda text: print(text, file=sys.stderr)) as demo:
        site = demo.start()
        name = demo.fill_depot()
        template, _ = demo.build_template(site, name=name)
        first = last_build(template)
        change_files(demo.lab["perforce"], name=name, place=place)
        demo.refresh_template(template)
        second = last_build(template)
    ratio = second["seconds"] / first["seconds"]
    for what, took in (("first build", first), ("refresh", second)):
        print(json.dumps({"figure": what, "files": FILES, **took}))
    print(
        json.dumps(
            {
                "figure": "refresh / first build",
                "ratio": round(ratio, 3),
                "at_most": MOST,
                "holds": ratio <= MOST,
                "changed": CHANGED,
                "load": round(os.getloadavg()[0], 1),
            }
        )
    )


def write_tree(root: Path) -> None:
    """Write Python files that take a moment to compile."""
    for number in range(FILES):
        directory = root / f"d{number // PER_DIRECTORY:04d}"
        directory.mkdir(parents=True, exist_ok=True)
        body = "".join(
            f"def f{line}(x, y={number}):\n    return [x * {line} + y for _ in x]\n\n"
            for line in range(LINES)
        )
        (directory / f"m{number % PER_DIRECTORY:03d}.py").write_text(body)


def change_files(perforce: dict[str, Any], *, name: str, place: Path) -> None:
    """Submit a change of ten files, spread over the tree."""
    from provisioner.demo import depot

    account = depot.DepotAccount(
        port=perforce["port"], user=perforce["user"], password=perforce["password"]
    )
    p4 = depot.connect(account, client="refresh-bench", scratch=place)
    root = place / "work"
    try:
        spec = p4.fetch_client("refresh-bench")
        spec["Root"], spec["Host"] = str(root), ""
        spec["View"] = [f"//depot/{name}/... //refresh-bench/..."]
        p4.save_client(spec)
        for number in range(CHANGED):
            wanted = number * (FILES // CHANGED)
            file = f"d{wanted // PER_DIRECTORY:04d}/m{wanted % PER_DIRECTORY:03d}.py"
            p4.run("sync", f"//depot/{name}/{file}")
            p4.run("edit", f"//depot/{name}/{file}")
            with (root / file).open("a") as text:
                text.write(f"CHANGED = {time.time()}\n")
        p4.run("submit", "-d", "Ten files")
    finally:
        p4.disconnect()


def last_build(template: Any) -> dict[str, Any]:
    """Return what the newest build took, and its steps."""
    from provisioner.workspaces.queries import latest_operation

    operation = latest_operation(template)
    assert operation is not None
    assert operation.ended_at is not None
    seconds = (operation.ended_at - operation.created_at).total_seconds()
    return {
        "seconds": round(seconds, 2),
        "steps": {s.name: round(s.seconds or 0, 2) for s in operation.steps.all()},
    }


if __name__ == "__main__":
    main()
