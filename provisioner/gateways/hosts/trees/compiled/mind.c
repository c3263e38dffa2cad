/* Ends the walk when its worker falls silent: another may go on with its step soon. */
#include "walk.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double most_silent;

/* Goes on while the machine sleeps. */
static double now(void) {
  struct timespec read;
  if (clock_gettime(CLOCK_BOOTTIME, &read)) give_up("clock_gettime");
  return (double)read.tv_sec + (double)read.tv_nsec / 1e9;
}

static void *mind(void *nothing) {
  char said[4096];
  double heard = now();
  for (;;) {
    struct pollfd worker = {.fd = STDIN_FILENO, .events = POLLIN};
    int ready = poll(&worker, 1, (int)(most_silent * 1000 / 5) + 1);
    if (now() - heard > most_silent) _exit(1);
    if (ready <= 0) continue;
    if (read(STDIN_FILENO, said, sizeof said) <= 0) _exit(1);
    heard = now();
  }
  return nothing;
}

void mind_worker(const char *silent_seconds) {
  pthread_t thread;
  char *end;
  most_silent = strtod(silent_seconds, &end);
  if (end == silent_seconds || *end || !(most_silent > 0 && most_silent < 1e6)) {
    errno = EINVAL;
    give_up(silent_seconds);
  }
  if ((errno = pthread_create(&thread, NULL, mind, NULL))) give_up("pthread_create");
}
