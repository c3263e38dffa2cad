/* Ends the walk when its worker falls silent: another may go on with its step soon. */
#include "walk.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double most_silent, heard;

/* Goes on while the machine sleeps. */
static double now(void) {
  struct timespec read;
  if (clock_gettime(CLOCK_BOOTTIME, &read)) give_up("clock_gettime");
  return (double)read.tv_sec + (double)read.tv_nsec / 1e9;
}

/* When this process was forked, by the clock of `now`: it may have been stopped before
   it began to listen. Field 22 of proc_pid_stat(5); the name ends with the last ')'. */
static double forked(void) {
  char stat[1024];
  FILE *file = fopen("/proc/self/stat", "r");
  if (!file) give_up("/proc/self/stat");
  size_t length = fread(stat, 1, sizeof stat - 1, file);
  fclose(file);
  stat[length] = 0;
  char *field = strrchr(stat, ')');
  for (int number = 2; field && number < 22; number++) field = strchr(field + 1, ' ');
  if (!field) {
    errno = EINVAL;
    give_up("/proc/self/stat");
  }
  return strtod(field, NULL) / (double)sysconf(_SC_CLK_TCK);
}

/* Returns the time, or ends this process. */
static double still_heard(void) {
  double at = now();
  if (at - heard > most_silent) _exit(1);
  return at;
}

/* Waits a while for the worker; returns whether it said that we may begin, or ends this
   process. */
static bool hear(void) {
  char said[4096];
  struct pollfd worker = {.fd = STDIN_FILENO, .events = POLLIN};
  int ready = poll(&worker, 1, (int)(most_silent * 1000 / 5) + 1);
  double at = still_heard();
  if (ready <= 0) return false;
  ssize_t length = read(STDIN_FILENO, said, sizeof said);
  if (length <= 0) _exit(1);
  heard = at;
  return memchr(said, 'B', (size_t)length);
}

static void *mind(void *nothing) {
  for (;;) hear();
  return nothing;
}

/* Waits until the worker says that we may begin: it may have lost its leave since it
   decided to start us. It answers that alone with 'B' (processes.BEGIN), or kills us: what
   it said before we were ready says nothing of now. */
void mind_worker(const char *silent_seconds) {
  pthread_t thread;
  char *end;
  most_silent = strtod(silent_seconds, &end);
  if (end == silent_seconds || *end || !(most_silent > 0 && most_silent < 1e6)) {
    errno = EINVAL;
    give_up(silent_seconds);
  }
  heard = forked();
  still_heard();
  puts("{\"ready\": true}");
  fflush(stdout);
  while (!hear()) continue;
  if ((errno = pthread_create(&thread, NULL, mind, NULL))) give_up("pthread_create");
}
