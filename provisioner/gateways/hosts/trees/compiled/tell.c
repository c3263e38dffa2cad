/* What the caller reads: a JSON object on each line. */
#include "walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Bytes that are not UTF-8 stay as they are: the reader has os.fsdecode for them. */
static void say_escaped(const char *text) {
  for (; *text; text++) {
    unsigned char byte = (unsigned char)*text;
    if (byte < ' ' || byte == '"' || byte == '\\')
      printf("\\u%04x", byte);
    else
      putchar_unlocked(byte);
  }
}

static void say_path(const struct directory *directory, const char *name) {
  size_t depth = 0;
  for (const struct directory *at = directory; at->parent; at = at->parent) depth++;
  const char **parts = allocate((depth + 1) * sizeof *parts);
  size_t place = depth;
  for (const struct directory *at = directory; at->parent; at = at->parent)
    parts[--place] = at->name;
  if (*name) parts[depth++] = name;
  for (place = 0; place < depth; place++) {
    if (place) putchar_unlocked('/');
    say_escaped(parts[place]);
  }
  if (!depth) putchar_unlocked('.');
  free(parts);
}

/* `name` "" is the directory itself. */
static void say_entry(const char *kind, const struct directory *directory,
                      const char *name, int error) {
  flockfile(stdout);
  printf("{\"%s\": [\"", kind);
  say_path(directory, name);
  printf("\", %d]}\n", error);
  funlockfile(stdout);
}

void say_counts(const char *kind, const struct counts *counts) {
  printf("{\"%s\": {\"entries\": %ju, \"done\": %ju, \"already\": %ju, "
         "\"privileged\": %ju, \"vanished\": %ju, \"failed\": %ju, \"skipped\": %ju}}\n",
         kind, (uintmax_t)counts->entries, (uintmax_t)counts->done,
         (uintmax_t)counts->already, (uintmax_t)counts->privileged,
         (uintmax_t)counts->vanished, (uintmax_t)counts->failed,
         (uintmax_t)counts->skipped);
  fflush(stdout);
}

void add_counts(struct counts *to, const struct counts *more) {
  to->entries += more->entries;
  to->done += more->done;
  to->already += more->already;
  to->privileged += more->privileged;
  to->vanished += more->vanished;
  to->failed += more->failed;
  to->skipped += more->skipped;
}

void skip(struct directory *directory, const char *name, struct counts *counts) {
  directory->stays = true;
  counts->skipped++;
  say_entry("skipped", directory, name, 0);
}

void fail(struct directory *directory, const char *name, int error,
          struct counts *counts) {
  directory->stays = true;
  counts->failed++;
  counts->entries++;
  say_entry("failed", directory, name, error);
}

/* What is gone is none of our business any more. */
void miss(struct directory *directory, const char *name, int error,
          struct counts *counts) {
  if (error == ENOENT)
    counts->vanished++;
  else
    fail(directory, name, error, counts);
}
