/* The program: takes its order, and tells how it goes. */
#include "walk.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
  FEWEST_THREADS = 2,
  MOST_FIRST_THREADS = 16,
  MOST_THREADS = 512,
  TICK_NANOSECONDS = 200 * 1000 * 1000,
};

struct order order;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t is_over = PTHREAD_COND_INITIALIZER;
unsigned unfinished, opened, threads;
struct counts totals;

_Noreturn void give_up(const char *what) {
  fprintf(stderr, "walk: %s: %s\n", what, strerror(errno));
  exit(1);
}

void *allocate(size_t bytes) {
  void *made = calloc(1, bytes);
  if (!made) give_up("memory");
  return made;
}

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
  unsigned most = files.rlim_max > INT_MAX ? INT_MAX : (unsigned)files.rlim_max;
  order.most_open = most / 2;
  /* Each thread may hold two beside those that wait. */
  order.thread_limit = most / 8 < MOST_THREADS ? most / 8 : MOST_THREADS;
}

/* Begin with the root: what is not permitted there is not permitted at all. */
static bool begin(int fd) {
  if (look(fd, "", &order.root)) return false;
  if (!(order.root.stx_mask & STATX_MNT_ID)) {
    errno = ENOSYS;
    give_up("STATX_MNT_ID");
  }
  if (order.removes) return true;
  totals.entries = 1;
  totals.already = order.root.stx_uid == order.owner && order.root.stx_gid == order.group;
  totals.done = !totals.already;
  return totals.already || !fchown(fd, order.owner, order.group);
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

static void take_owner(char **arguments) {
  order.owner = (uid_t)number(arguments[0]);
  order.group = (gid_t)number(arguments[1]);
  order.is_whole = number(arguments[2]);
  order.looks_at_all = !order.is_whole || order.has_mounts;
  if (!order.owner || !order.group || order.owner == (uid_t)-1 ||
      order.group == (gid_t)-1) {
    errno = EINVAL;
    give_up("uid or gid");
  }
}

/* Return the root, or NULL where this is no order. */
static struct directory *take_order(int count, char **arguments) {
  if (count < 6) return NULL;
  order.removes = count == 6 && !strcmp(arguments[5], "remove");
  if (!order.removes && (count != 9 || strcmp(arguments[5], "own"))) return NULL;
  struct directory *root = make_subdirectory(NULL, "");
  root->fd = (int)number(arguments[3]);
  order.has_mounts = number(arguments[4]);
  if (!order.removes) take_owner(arguments + 6);
  if (lseek(root->fd, 0, SEEK_SET)) give_up("root");
  return root;
}

/* As many as there are processors, at first. */
static unsigned first_threads(void) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed)) give_up("sched_getaffinity");
  order.processors = (unsigned)CPU_COUNT(&allowed);
  if (order.processors < FEWEST_THREADS) return FEWEST_THREADS;
  return order.processors < MOST_FIRST_THREADS ? order.processors : MOST_FIRST_THREADS;
}

static void start(struct directory *root) {
  root->is_entered = true;
  root->inode = order.root.stx_ino;
  root->users = root->holders = 2; /* its reading, and so that it stays open */
  opened = 1;
  pthread_mutex_lock(&lock);
  push(root);
  add_threads(first_threads());
  if (!threads) give_up("pthread_create");
  pthread_mutex_unlock(&lock);
}

int main(int count, char **arguments) {
  struct directory *root = take_order(count, arguments);
  if (!root) {
    fputs("usage: walk PARENT_PID SILENT_SECONDS ROOT_FD HAS_MOUNTS own UID GID "
          "IS_WHOLE\n"
          "       walk PARENT_PID SILENT_SECONDS ROOT_FD HAS_MOUNTS remove\n",
          stderr);
    return 2;
  }
  die_with((pid_t)number(arguments[1]));
  mind_worker(arguments[2]);
  open_many_files();
  if (!begin(root->fd)) {
    printf("{\"root_failed\": %d}\n", errno);
    return 0;
  }
  start(root);
  wait_until_over();
  name_links_left();
  say_counts("ended", &totals);
  return 0;
}
