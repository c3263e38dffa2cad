"""A clock that is wrong, for one process alone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

# Python asks by clock_gettime; time() and gettimeofday() are for libraries in C.
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
#define AHEAD %d

int clock_gettime(clockid_t id, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int answer = real(id, now);
    if (!answer && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        now->tv_sec += AHEAD;
    return answer;
}

time_t time(time_t *where)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where)
        *where = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *where, void *zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    where->tv_sec = now.tv_sec;
    where->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""


def can_be_shifted() -> bool:
    """Return whether there is a compiler."""
    return shutil.which("cc") is not None


def clock_ahead(*, seconds: int, directory: Path) -> dict[str, str]:
    """Return the environment of a process whose clock is ahead."""
    source, library = directory / "ahead.c", directory / "ahead.so"
    source.write_text(SHIM % seconds)
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"],
        check=True,
    )
    return {"LD_PRELOAD": str(library)}
