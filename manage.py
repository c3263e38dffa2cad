#!/usr/bin/env python
from __future__ import annotations

from provisioner.server import main

if __name__ == "__main__":
    main()
