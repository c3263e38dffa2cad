"""One stylesheet for every page: `css/cloneyard.css` names its parts.

In development the browser loads each part. `collectstatic` inlines the parts, so that a
page loads one file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from whitenoise.storage import CompressedManifestStaticFilesStorage

STYLESHEET = "css/cloneyard.css"
PART = re.compile(r'^@import url\("([\w-]+\.css)"\)(?: ([\w-]+))?;$', re.MULTILINE)


def with_parts(stylesheet: str, read: Callable[[str], str]) -> str:
    """Return a stylesheet with its parts inlined."""

    def part(named: re.Match[str]) -> str:
        name, medium = named.groups()
        text = read(name).strip()
        return f"@media {medium} {{\n{text}\n}}" if medium else text

    return PART.sub(part, stylesheet)


class StylesheetStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # WhiteNoise has no types
    """Collects static files, and inlines the parts of the stylesheet."""

    def post_process(
        self, paths: dict[str, Any], dry_run: bool = False, **options: Any
    ) -> Any:
        if not dry_run and STYLESHEET in paths:
            folder = PurePosixPath(STYLESHEET).parent

            def read(name: str) -> str:
                storage, path = paths[str(folder / name)]
                with storage.open(path) as file:
                    return str(file.read().decode())

            whole = with_parts(read(PurePosixPath(STYLESHEET).name), read)
            with open(self.path(STYLESHEET), "w", encoding="utf-8") as file:
                file.write(whole)
            paths = {**paths, STYLESHEET: (self, STYLESHEET)}
        yield from super().post_process(paths, dry_run, **options)
