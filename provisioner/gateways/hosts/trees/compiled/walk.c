/* Reading directories, and as many threads as that is worth. */
#include "walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
  MOST_FAST_THREADS = 16,
  STACK_BYTES = 128 * 1024,
  /* What is read from a directory at a time: some 25 names while it is not known what
     a call costs and where calls wait, because one thread acts on all of them. */
  SMALL_CHUNK = 1024,
  LARGE_CHUNK = 32 * 1024,
  SAMPLES = 3,
};

/* A call that sleeps, and longer than this, waits for a server or a disk; what one
   costs a processor then is the reason to have no more threads than keep all busy. */
static const double SLOW_SECONDS = 100e-6, CALL_CPU_SECONDS = 4e-6;

static double waits[SAMPLES];
static uint64_t samples;
static size_t chunk_bytes = SMALL_CHUNK;

static void *work(void *);

/* Something else took the name of a directory after it was read. */
static void not_entered(struct directory *directory, int parent_fd, int error,
                        struct counts *counts) {
  if (parent_fd >= 0 && (error == ENOTDIR || error == ELOOP))
    act_on_name(directory->parent, parent_fd, directory->name, counts);
  else
    miss(directory->parent, directory->name, error, counts);
}

/* Open a directory from its parent, unless it is another filesystem. */
static bool enter(struct directory *directory, struct statx *found,
                  struct counts *counts) {
  struct directory *parent = directory->parent;
  int parent_fd = borrow(parent);
  int fd = parent_fd < 0 ? -1 : open_directory(parent_fd, directory->name);
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
  if (!order.removes) waits_no_more(parent);
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

/* Read the next names; where the filesystem does not tell their types, look. */
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

static bool leads_back(const char *name) {
  return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Put the directories of a chunk before others, linked by `older`. */
static struct directory *subdirectories(struct directory *parent, const char *chunk,
                                        ssize_t size, struct directory *first) {
  for (const char *at = chunk; at < chunk + size;) {
    const struct listed *entry = (const struct listed *)at;
    at += entry->length;
    if (entry->type != DT_DIR || leads_back(entry->name)) continue;
    if (!strcmp(entry->name, ".snapshot")) { /* as a file server shows snapshots */
      parent->stays = true;
      continue;
    }
    struct directory *made = make_subdirectory(parent, entry->name);
    made->older = first;
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
    struct directory *older = below->older;
    directory->waiting++;
    directory->holders++;
    push(below);
    below = older;
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
  double computed = now.computed - before->computed;
  return (now.passed - before->passed - computed) / (double)calls;
}

void add_threads(unsigned wanted) {
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
      double useful = order.processors * wait / CALL_CPU_SECONDS;
      add_threads(useful < order.thread_limit ? (unsigned)useful : order.thread_limit);
    }
  }
  pthread_mutex_unlock(&lock);
}

/* Act on one chunk of a directory, and give away itself when it is new. */
static void act_on_chunk(struct directory *directory, const struct statx *itself,
                         const char *chunk, ssize_t size, struct counts *counts) {
  if (!itself && !size) return; /* its end was found */
  uint64_t before = counts->entries;
  struct meter meter = read_meter();
  if (itself && !order.removes)
    change_found(directory, directory->fd, "", itself, counts);
  act_on_names(directory, directory->fd, chunk, size, counts);
  uint64_t calls = counts->entries - before;
  if (calls) learn(waited_each(&meter, calls));
}

/* Read on in a directory, share what is there, and act on what was read. Where too many
   are open it is read to its end before anybody enters what is below, so that its
   descriptor can be closed meanwhile. */
static void read_on(struct directory *directory, const struct statx *itself,
                    char *chunk, struct counts *counts) {
  pthread_mutex_lock(&lock);
  directory->users++;
  directory->holders++;
  size_t bytes = chunk_bytes;
  bool is_alone = opened > order.most_open;
  pthread_mutex_unlock(&lock);
  struct directory *below = NULL;
  ssize_t size;
  do {
    size = read_chunk(directory, chunk, bytes, counts);
    below = subdirectories(directory, chunk, size, below);
    if (!is_alone) share(directory, below, !size);
    act_on_chunk(directory, itself, chunk, size, counts);
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
  let_go(directory, counts);
  pthread_mutex_unlock(&lock);
}

static void *work(void *unused) {
  char *chunk = allocate(LARGE_CHUNK);
  struct directory *directory;
  make_stack();
  while ((directory = take())) {
    struct counts counts = {0};
    walk(directory, chunk, &counts);
    finish_one(&counts);
  }
  free(chunk);
  return unused;
}
