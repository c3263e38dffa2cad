/* Gives a tree to an owner: everything below one open directory, with many threads.

     own PARENT_PID ROOT_FD UID GID THREADS IS_WHOLE HAS_MOUNTS

   Does what `own.py`, `walk.py` and `worker.py` do, and says the same JSON lines; those
   run where this was not built (see `native.py`). It never sees a path: it is given an open directory,
   and every name is looked up in the open directory that it was read from, without
   following a link. So nothing that happens to the tree meanwhile leads out of it.

   THREADS 0 lets it choose. IS_WHOLE 1 says that the tree is all there is of its
   filesystem, so that no file in it has a name outside; HAS_MOUNTS 1 that something is
   mounted in it.

   Needs Linux 5.8, for STATX_MNT_ID. Source: statx(2), openat(2), fchownat(2),
   getdents64(2). */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <search.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef STATX_MNT_ID
#error "The headers are older than Linux 5.8."
#endif

enum {
  FEWEST_THREADS = 2,
  MOST_FAST_THREADS = 16,
  MOST_THREADS = 512,
  STACK_BYTES = 128 * 1024,
  /* What is read from a directory at a time: some 25 names while it is not known what
     a call costs and where calls wait, because one thread acts on all of them. */
  SMALL_CHUNK = 1024,
  LARGE_CHUNK = 32 * 1024,
  SAMPLES = 3,
  /* Names of a chunk that are looked at before the rest is taken to be alike. */
  NAMES_LOOKED_AT = 4,
  TICK_NANOSECONDS = 200 * 1000 * 1000,
};

/* A call that sleeps, and longer than this, waits for a server or a disk; what one
   costs a processor then is the reason to have no more threads than keep all busy. */
static const double SLOW_SECONDS = 100e-6, CALL_CPU_SECONDS = 4e-6;

static const int OPEN_DIRECTORY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
static const unsigned LOOKED_FOR =
    STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_UID | STATX_GID | STATX_INO | STATX_MNT_ID;

/* As linux/dirent.h has it; libc shows another one. */
struct listed {
  uint64_t inode;
  int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[];
};

struct directory {
  struct directory *parent, *next;
  int fd;           /* -1 before it is entered, and when it was closed meanwhile */
  unsigned users;   /* threads that use the descriptor now, and its reading */
  unsigned waiting; /* subdirectories that are still to be opened from it */
  unsigned holders; /* who needs this record: itself, subdirectories, linked names */
  bool is_entered;
  uint64_t inode; /* known once it is entered */
  char name[];
};

/* The words of the report. */
struct counts {
  uint64_t entries, done, already, privileged, vanished, failed, skipped;
};

/* A file with several names, until all of them have been met. */
struct linked {
  uint64_t inode;
  unsigned names, met;
  struct linked_name *first;
};

struct linked_name {
  struct linked_name *next;
  struct directory *directory;
  char name[];
};

/* Written before there are threads. */
static uid_t owner;
static gid_t group;
static bool is_whole, looks_at_all;
static struct statx root_status;
static unsigned most_open, thread_limit, processors;

/* Everything below, and every `struct directory`, is changed under this lock alone. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_work = PTHREAD_COND_INITIALIZER;
static pthread_cond_t is_over = PTHREAD_COND_INITIALIZER;
static struct directory *stack;
static unsigned unfinished; /* directories on the stack or in a thread's hands */
static unsigned opened, threads;
static struct counts totals;
static double waits[SAMPLES];
static uint64_t samples;
static size_t chunk_bytes = SMALL_CHUNK;
static void *links; /* `struct linked`, as tsearch(3) keeps them */

static void *work(void *);

static _Noreturn void give_up(const char *what) {
  fprintf(stderr, "own: %s: %s\n", what, strerror(errno));
  exit(1);
}

static void *allocate(size_t bytes) {
  void *made = calloc(1, bytes);
  if (!made) give_up("memory");
  return made;
}

/* -- what the caller reads -- */

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

static void say_counts(const char *kind, const struct counts *counts) {
  printf("{\"%s\": {\"entries\": %ju, \"done\": %ju, \"already\": %ju, "
         "\"privileged\": %ju, \"vanished\": %ju, \"failed\": %ju, \"skipped\": %ju}}\n",
         kind, (uintmax_t)counts->entries, (uintmax_t)counts->done,
         (uintmax_t)counts->already, (uintmax_t)counts->privileged,
         (uintmax_t)counts->vanished, (uintmax_t)counts->failed,
         (uintmax_t)counts->skipped);
  fflush(stdout);
}

static void add_counts(struct counts *to, const struct counts *more) {
  to->entries += more->entries;
  to->done += more->done;
  to->already += more->already;
  to->privileged += more->privileged;
  to->vanished += more->vanished;
  to->failed += more->failed;
  to->skipped += more->skipped;
}

static void skip(const struct directory *directory, const char *name,
                 struct counts *counts) {
  counts->skipped++;
  say_entry("skipped", directory, name, 0);
}

static void fail(const struct directory *directory, const char *name, int error,
                 struct counts *counts) {
  counts->failed++;
  counts->entries++;
  say_entry("failed", directory, name, error);
}

/* What is gone is none of our business any more. */
static void miss(const struct directory *directory, const char *name, int error,
                 struct counts *counts) {
  if (error == ENOENT)
    counts->vanished++;
  else
    fail(directory, name, error, counts);
}

/* -- directories and their descriptors -- */

static void close_if_unneeded(struct directory *directory) {
  if (directory->fd < 0 || directory->users) return;
  if (directory->waiting && opened <= most_open) return;
  close(directory->fd);
  directory->fd = -1;
  opened--;
}

static void let_go(struct directory *directory) {
  while (directory && !--directory->holders) {
    struct directory *parent = directory->parent;
    free(directory);
    directory = parent;
  }
}

static struct directory *make_subdirectory(struct directory *parent, const char *name) {
  size_t length = strlen(name) + 1;
  struct directory *made = allocate(sizeof *made + length);
  memcpy(made->name, name, length);
  made->parent = parent;
  made->fd = -1;
  made->holders = 1;
  return made;
}

static bool is_elsewhere(const struct statx *found) {
  return found->stx_dev_major != root_status.stx_dev_major ||
         found->stx_dev_minor != root_status.stx_dev_minor ||
         found->stx_mnt_id != root_status.stx_mnt_id;
}

static int look(int fd, const char *name, struct statx *found) {
  int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (*name ? 0 : AT_EMPTY_PATH);
  return statx(fd, name, flags, LOOKED_FOR, found);
}

/* Open a directory that was closed meanwhile again, name by name from one that is
   still open. What is found there has to be the same directory. */
static int reopen(const struct directory *directory) {
  const struct directory *from = directory->parent;
  size_t steps = 1;
  pthread_mutex_lock(&lock);
  for (; from->fd < 0; from = from->parent) steps++;
  int fd = fcntl(from->fd, F_DUPFD_CLOEXEC, 0);
  pthread_mutex_unlock(&lock);
  const struct directory **way = allocate(steps * sizeof *way);
  const struct directory *at = directory;
  for (size_t step = steps; step-- > 0; at = at->parent) way[step] = at;
  for (size_t step = 0; fd >= 0 && step < steps; step++) {
    int below = openat(fd, way[step]->name, OPEN_DIRECTORY);
    int error = errno;
    close(fd);
    errno = error;
    fd = below;
  }
  free(way);
  struct statx found;
  if (fd >= 0 &&
      (look(fd, "", &found) || is_elsewhere(&found) || found.stx_ino != directory->inode)) {
    close(fd);
    errno = ENOENT;
    return -1;
  }
  return fd;
}

/* Return a descriptor to act on names with, or -1; `give_back` takes it. */
static int borrow(struct directory *directory) {
  pthread_mutex_lock(&lock);
  int fd = directory->fd;
  if (fd >= 0) directory->users++;
  pthread_mutex_unlock(&lock);
  return fd >= 0 ? fd : reopen(directory);
}

static void give_back(struct directory *directory, int fd) {
  if (fd < 0) return;
  pthread_mutex_lock(&lock);
  /* It cannot have been closed while it was lent, and a private one is another. */
  bool is_private = fd != directory->fd;
  if (!is_private) {
    directory->users--;
    close_if_unneeded(directory);
  }
  pthread_mutex_unlock(&lock);
  if (is_private) close(fd);
}

/* -- entries -- */

/* setgid without group execute means mandatory locking, which chown leaves. */
static bool loses_privilege(mode_t mode) {
  bool is_setgid = (mode & S_ISGID) && (mode & S_IXGRP);
  return S_ISREG(mode) && ((mode & S_ISUID) || is_setgid);
}

static bool change_unseen(struct directory *directory, int fd, const char *name,
                          struct counts *counts) {
  int failed = *name ? fchownat(fd, name, owner, group, AT_SYMLINK_NOFOLLOW)
                     : fchown(fd, owner, group);
  if (failed) {
    miss(directory, name, errno, counts);
    return false;
  }
  counts->done++;
  counts->entries++;
  return true;
}

/* Change what was found unless it is right; say whether it was changed. */
static bool change_found(struct directory *directory, int fd, const char *name,
                         const struct statx *found, struct counts *counts) {
  if (found->stx_uid == owner && found->stx_gid == group) {
    counts->already++;
    counts->entries++;
    return false;
  }
  if (!change_unseen(directory, fd, name, counts)) return false;
  counts->privileged += loses_privilege(found->stx_mode);
  return true;
}

static void meet_link(struct directory *directory, const char *name,
                      const struct statx *found, struct counts *counts);

static bool change_name(struct directory *directory, int fd, const char *name,
                        struct counts *counts) {
  struct statx found;
  if (look(fd, name, &found)) {
    miss(directory, name, errno, counts);
    return false;
  }
  if (is_elsewhere(&found)) {
    skip(directory, name, counts);
    return false;
  }
  if (found.stx_nlink > 1 && !is_whole && !S_ISDIR(found.stx_mode)) {
    meet_link(directory, name, &found, counts);
    return false;
  }
  return change_found(directory, fd, name, &found, counts);
}

/* In a filesystem that is all ours, a chunk in which the first names all had to be
   changed is finished without looking: changing what is right does no harm. */
static void change_names(struct directory *directory, int fd, const char *chunk,
                         ssize_t size, struct counts *counts) {
  unsigned position = 0, changed = 0;
  for (const char *at = chunk; at < chunk + size;) {
    const struct listed *entry = (const struct listed *)at;
    at += entry->length;
    if (entry->type == DT_DIR) continue;
    bool is_seen = looks_at_all || position < NAMES_LOOKED_AT || changed < position;
    changed += is_seen ? change_name(directory, fd, entry->name, counts)
                       : change_unseen(directory, fd, entry->name, counts);
    position++;
  }
}

/* -- files with several names -- */

static int compare_links(const void *one, const void *other) {
  uint64_t left = ((const struct linked *)one)->inode;
  uint64_t right = ((const struct linked *)other)->inode;
  return (left > right) - (left < right);
}

static bool is_met(const struct linked *file, const struct directory *directory,
                   const char *name) {
  for (const struct linked_name *at = file->first; at; at = at->next)
    if (at->directory->inode == directory->inode && !strcmp(at->name, name)) return true;
  return false;
}

/* Add a name; return the file when that was its last one, and forget it. */
static struct linked *add_link(struct directory *directory, const char *name,
                               const struct statx *found) {
  struct linked key = {.inode = found->stx_ino};
  struct linked **known = tfind(&key, &links, compare_links);
  struct linked *file = known ? *known : NULL;
  if (!file) {
    file = allocate(sizeof *file);
    file->inode = found->stx_ino;
    if (!tsearch(file, &links, compare_links)) give_up("memory");
  }
  file->names = found->stx_nlink;
  if (is_met(file, directory, name)) return NULL; /* its directory was moved and read again */
  size_t length = strlen(name) + 1;
  struct linked_name *made = allocate(sizeof *made + length);
  memcpy(made->name, name, length);
  made->directory = directory;
  directory->holders++;
  made->next = file->first;
  file->first = made;
  if (++file->met < file->names) return NULL;
  tdelete(file, &links, compare_links);
  return file;
}

static void forget_link(struct linked *file) {
  for (struct linked_name *at = file->first, *next; at; at = next) {
    next = at->next;
    let_go(at->directory);
    free(at);
  }
  free(file);
}

static bool is_still_there(const struct linked_name *name, uint64_t inode) {
  struct statx found;
  int fd = borrow(name->directory);
  bool is_so = fd >= 0 && !look(fd, name->name, &found) && !is_elsewhere(&found) &&
               found.stx_ino == inode;
  give_back(name->directory, fd);
  return is_so;
}

/* Change a file all of whose names were met, if they are all still there: one that
   was renamed and met twice may have another name outside. */
static void change_linked(const struct linked *file, struct counts *counts) {
  struct directory *directory = file->first->directory;
  const char *name = file->first->name;
  struct counts one = {0};
  struct statx found;
  int error = 0;
  for (const struct linked_name *at = file->first; at; at = at->next)
    if (!is_still_there(at, file->inode)) error = EMLINK;
  int fd = borrow(directory);
  if (error || fd < 0 || look(fd, name, &found) || found.stx_ino != file->inode ||
      found.stx_nlink > file->met)
    error = EMLINK;
  else if (found.stx_uid == owner && found.stx_gid == group)
    one.already = file->met;
  else if (fchownat(fd, name, owner, group, AT_SYMLINK_NOFOLLOW))
    error = errno;
  else
    one.done = file->met, one.privileged = loses_privilege(found.stx_mode);
  give_back(directory, fd);
  one.entries = one.done + one.already;
  add_counts(counts, &one);
  if (error)
    for (const struct linked_name *at = file->first; at; at = at->next)
      miss(at->directory, at->name, error, counts);
}

/* A file is given away when all its names were met below the root; one that is also
   elsewhere is left alone, because elsewhere would change too. */
static void meet_link(struct directory *directory, const char *name,
                      const struct statx *found, struct counts *counts) {
  pthread_mutex_lock(&lock);
  struct linked *file = add_link(directory, name, found);
  pthread_mutex_unlock(&lock);
  if (!file) return;
  change_linked(file, counts);
  pthread_mutex_lock(&lock);
  forget_link(file);
  pthread_mutex_unlock(&lock);
}

static void name_left_over(const void *node, VISIT visit, int depth) {
  (void)depth;
  if (visit != postorder && visit != leaf) return;
  const struct linked *file = *(struct linked *const *)node;
  for (const struct linked_name *at = file->first; at; at = at->next)
    fail(at->directory, at->name, EMLINK, &totals);
}

/* -- walking -- */

/* Wait for a directory that is to be entered or read on; NULL when all is done. */
static struct directory *take(void) {
  pthread_mutex_lock(&lock);
  while (!stack && unfinished) pthread_cond_wait(&has_work, &lock);
  struct directory *taken = stack;
  if (taken) stack = taken->next;
  pthread_mutex_unlock(&lock);
  return taken;
}

static void push(struct directory *directory) {
  directory->next = stack;
  stack = directory;
  unfinished++;
  pthread_cond_signal(&has_work);
}

static void finish_one(const struct counts *counts) {
  pthread_mutex_lock(&lock);
  add_counts(&totals, counts);
  if (!--unfinished) {
    pthread_cond_broadcast(&has_work);
    pthread_cond_signal(&is_over);
  }
  pthread_mutex_unlock(&lock);
}

/* Something else took the name of a directory after it was read. */
static void not_entered(struct directory *directory, int parent_fd, int error,
                        struct counts *counts) {
  if (parent_fd >= 0 && (error == ENOTDIR || error == ELOOP))
    change_name(directory->parent, parent_fd, directory->name, counts);
  else
    miss(directory->parent, directory->name, error, counts);
}

/* Open a directory from its parent, unless it is another filesystem. */
static bool enter(struct directory *directory, struct statx *found,
                  struct counts *counts) {
  struct directory *parent = directory->parent;
  int parent_fd = borrow(parent);
  int fd = parent_fd < 0 ? -1 : openat(parent_fd, directory->name, OPEN_DIRECTORY);
  bool is_ours = false;
  if (fd < 0 || look(fd, "", found))
    not_entered(directory, parent_fd, errno, counts);
  else if (is_elsewhere(found))
    skip(directory, "", counts);
  else
    is_ours = true;
  if (fd >= 0 && !is_ours) close(fd);
  give_back(parent, parent_fd);
  pthread_mutex_lock(&lock);
  parent->waiting--;
  close_if_unneeded(parent);
  if (is_ours) {
    directory->fd = fd;
    directory->users = 1;
    directory->is_entered = true;
    directory->inode = found->stx_ino;
    opened++;
  }
  pthread_mutex_unlock(&lock);
  return is_ours;
}

/* Read the next names; what the filesystem does not tell of their types is looked at. */
static ssize_t read_chunk(struct directory *directory, char *chunk, size_t bytes,
                          struct counts *counts) {
  long size = syscall(SYS_getdents64, directory->fd, chunk, bytes);
  if (size < 0) {
    fail(directory, "", errno, counts);
    return 0;
  }
  for (char *at = chunk; at < chunk + size; at += ((struct listed *)at)->length) {
    struct listed *entry = (struct listed *)at;
    struct statx found;
    if (entry->type == DT_UNKNOWN && !look(directory->fd, entry->name, &found) &&
        S_ISDIR(found.stx_mode))
      entry->type = DT_DIR;
  }
  return size;
}

static bool is_dots(const char *name) {
  return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Put the directories of a chunk before others, linked by `next`. */
static struct directory *subdirectories(struct directory *parent, const char *chunk,
                                        ssize_t size, struct directory *first) {
  for (const char *at = chunk; at < chunk + size;) {
    const struct listed *entry = (const struct listed *)at;
    at += entry->length;
    if (entry->type != DT_DIR || is_dots(entry->name)) continue;
    struct directory *made = make_subdirectory(parent, entry->name);
    made->next = first;
    first = made;
  }
  return first;
}

/* Let others go on: with what is below, and after that with the rest of this one. */
static void share(struct directory *directory, struct directory *below, bool is_read) {
  pthread_mutex_lock(&lock);
  if (is_read) {
    directory->users--;
    directory->holders--; /* not the last ones: whoever acts on a chunk has his own */
  } else {
    push(directory);
  }
  while (below) {
    struct directory *next = below->next;
    directory->waiting++;
    directory->holders++;
    push(below);
    below = next;
  }
  pthread_mutex_unlock(&lock);
}

/* What this thread has cost until now. */
struct meter {
  double passed, computed;
  long sleeps;
};

static struct meter read_meter(void) {
  struct timespec now;
  struct rusage used;
  clock_gettime(CLOCK_MONOTONIC, &now);
  getrusage(RUSAGE_THREAD, &used);
  return (struct meter){
      .passed = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec,
      .computed = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                  1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec),
      .sleeps = used.ru_nvcsw,
  };
}

/* Return how long one of so many calls waited. Where fewer than half of them slept it
   was for a processor, if at all, and more threads would not help. */
static double waited_each(const struct meter *before, uint64_t calls) {
  struct meter now = read_meter();
  if ((uint64_t)(now.sleeps - before->sleeps) < (calls + 1) / 2) return 0;
  return (now.passed - before->passed - (now.computed - before->computed)) / (double)calls;
}

static void add_threads(unsigned wanted) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  for (; threads < wanted; threads++) {
    pthread_t made;
    if (pthread_create(&made, &attributes, work, NULL)) break; /* then with fewer */
  }
  pthread_attr_destroy(&attributes);
}

/* Choose the chunks, and once more threads, from what calls have cost lately. The
   shortest wait counts: a pause of the machine is not a slow server. */
static void learn(double waited) {
  pthread_mutex_lock(&lock);
  waits[samples++ % SAMPLES] = waited;
  if (samples >= SAMPLES) {
    double wait = waits[0];
    for (int at = 1; at < SAMPLES; at++)
      if (waits[at] < wait) wait = waits[at];
    bool is_slow = wait > SLOW_SECONDS;
    chunk_bytes = is_slow ? SMALL_CHUNK : LARGE_CHUNK;
    if (is_slow && threads <= MOST_FAST_THREADS) {
      double useful = processors * wait / CALL_CPU_SECONDS;
      add_threads(useful < thread_limit ? (unsigned)useful : thread_limit);
    }
  }
  pthread_mutex_unlock(&lock);
}

/* Act on one chunk of a directory, and on itself when it is new. */
static void change_chunk(struct directory *directory, const struct statx *itself,
                         const char *chunk, ssize_t size, struct counts *counts) {
  uint64_t before = counts->entries;
  struct meter meter = read_meter();
  if (itself) change_found(directory, directory->fd, "", itself, counts);
  change_names(directory, directory->fd, chunk, size, counts);
  uint64_t calls = counts->entries - before;
  if (calls) learn(waited_each(&meter, calls));
}

/* Read on in a directory, share what is there, and act on what was read. Where too many
   are open it is read to its end before anybody enters what is below, so that its
   descriptor can be closed meanwhile. */
static void read_on(struct directory *directory, const struct statx *itself, char *chunk,
                    struct counts *counts) {
  pthread_mutex_lock(&lock);
  directory->users++;
  directory->holders++;
  size_t bytes = chunk_bytes;
  bool is_alone = opened > most_open;
  pthread_mutex_unlock(&lock);
  struct directory *below = NULL;
  ssize_t size;
  do {
    size = read_chunk(directory, chunk, bytes, counts);
    below = subdirectories(directory, chunk, size, below);
    if (!is_alone) share(directory, below, !size);
    change_chunk(directory, itself, chunk, size, counts);
    itself = NULL;
  } while (is_alone && size);
  if (is_alone) share(directory, below, true);
  give_back(directory, directory->fd);
}

static void walk(struct directory *directory, char *chunk, struct counts *counts) {
  struct statx found;
  if (directory->is_entered)
    read_on(directory, NULL, chunk, counts);
  else if (enter(directory, &found, counts))
    read_on(directory, &found, chunk, counts);
  pthread_mutex_lock(&lock);
  let_go(directory);
  pthread_mutex_unlock(&lock);
}

static void *work(void *unused) {
  char *chunk = allocate(LARGE_CHUNK);
  struct directory *directory;
  while ((directory = take())) {
    struct counts counts = {0};
    walk(directory, chunk, &counts);
    finish_one(&counts);
  }
  return unused;
}

/* -- the program -- */

static unsigned long number(const char *text) {
  char *end;
  errno = 0;
  unsigned long read = strtoul(text, &end, 10);
  if (errno || !*text || *end || read > UINT_MAX) {
    errno = EINVAL;
    give_up(text);
  }
  return read;
}

static void die_with(pid_t parent) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)) give_up("prctl");
  if (getppid() != parent) raise(SIGKILL); /* It ended before we asked. */
}

static void open_many_files(void) {
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files)) give_up("getrlimit");
  files.rlim_cur = files.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &files)) give_up("setrlimit");
  most_open = files.rlim_max > INT_MAX ? INT_MAX / 2 : (unsigned)files.rlim_max / 2;
  /* Each thread may hold two beside those that wait. */
  thread_limit = most_open / 4 < MOST_THREADS ? most_open / 4 : MOST_THREADS;
}

/* Give away the root first: what is not permitted there is not permitted at all. */
static bool own_root(int fd) {
  if (look(fd, "", &root_status)) {
    printf("{\"root_failed\": %d}\n", errno);
    return false;
  }
  if (!(root_status.stx_mask & STATX_MNT_ID)) {
    errno = ENOSYS;
    give_up("STATX_MNT_ID");
  }
  if (root_status.stx_uid == owner && root_status.stx_gid == group) {
    totals.already = 1;
  } else if (fchown(fd, owner, group)) {
    printf("{\"root_failed\": %d}\n", errno);
    return false;
  } else {
    totals.done = 1;
  }
  totals.entries = 1;
  return true;
}

static void wait_until_over(void) {
  pthread_mutex_lock(&lock);
  while (unfinished) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += TICK_NANOSECONDS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_cond_timedwait(&is_over, &lock, &until) != ETIMEDOUT) continue;
    struct counts now = totals;
    pthread_mutex_unlock(&lock);
    say_counts("progress", &now);
    pthread_mutex_lock(&lock);
  }
  pthread_mutex_unlock(&lock);
}

int main(int count, char **arguments) {
  if (count != 8) {
    fputs("usage: own PARENT_PID ROOT_FD UID GID THREADS IS_WHOLE HAS_MOUNTS\n", stderr);
    return 2;
  }
  die_with((pid_t)number(arguments[1]));
  struct directory *root = make_subdirectory(NULL, "");
  root->fd = (int)number(arguments[2]);
  owner = (uid_t)number(arguments[3]);
  group = (gid_t)number(arguments[4]);
  unsigned wanted = (unsigned)number(arguments[5]);
  is_whole = number(arguments[6]);
  looks_at_all = !is_whole || number(arguments[7]);
  if (!owner || !group || owner == (uid_t)-1 || group == (gid_t)-1) {
    errno = EINVAL;
    give_up("uid or gid");
  }
  open_many_files();
  if (lseek(root->fd, 0, SEEK_SET)) give_up("root");
  if (!own_root(root->fd)) return 0;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed)) give_up("sched_getaffinity");
  processors = (unsigned)CPU_COUNT(&allowed);
  root->is_entered = true;
  root->inode = root_status.stx_ino;
  root->users = 2; /* its reading, and so that it stays open */
  root->holders = 2;
  opened = 1;
  pthread_mutex_lock(&lock);
  push(root);
  if (wanted) {
    thread_limit = wanted;
  } else {
    wanted = processors < FEWEST_THREADS ? FEWEST_THREADS : processors;
    if (wanted > MOST_FAST_THREADS) wanted = MOST_FAST_THREADS;
  }
  add_threads(wanted);
  if (!threads) give_up("pthread_create");
  pthread_mutex_unlock(&lock);
  wait_until_over();
  twalk(links, name_left_over);
  say_counts("ended", &totals);
  return 0;
}
