"""What is done again and again without being asked: a module per subject.

Each task is periodic, short, idempotent and in the queue "sweeps", which every worker
serves. Importing this package registers all of them, whatever their names.
"""

from __future__ import annotations

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__, prefix=f"{__name__}."):
    importlib.import_module(_module.name)
