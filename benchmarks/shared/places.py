"""A directory for one benchmark with everything in it; gone however that ends."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

from shared.endings import end_in_order

REPOSITORY = Path(__file__).resolve().parents[2]


def place_of_its_own(name: str = "bench") -> Path:
    """Return the directory; settings read afterwards have an embedded PostgreSQL there.

    Call it before Django is set up.
    """
    end_in_order()
    place = Path(tempfile.mkdtemp(prefix=f"cloneyard-{name}-", dir="/var/tmp"))
    place.chmod(0o755)
    use_place(place / "var")
    # Registered first, so run last: PostgreSQL lets go of its place at exit, too.
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def use_place(var_dir: Path) -> None:
    """Have the embedded PostgreSQL in this directory, which stays.

    Call it before Django is set up.
    """
    sys.path.insert(0, str(REPOSITORY))
    os.environ["VAR_DIR"] = str(var_dir.resolve())
    os.environ.pop("DATABASE_URL", None)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "provisioner.settings")
