/* The program: takes its order, and tells how it goes. */
#include "own.h"

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
  fprintf(stderr, "own: %s: %s\n", what, strerror(errno));
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

/* Give away the root first: what is not permitted there is not permitted at all. */
static bool own_root(int fd) {
  if (look(fd, "", &order.root)) {
    printf("{\"root_failed\": %d}\n", errno);
    return false;
  }
  if (!(order.root.stx_mask & STATX_MNT_ID)) {
    errno = ENOSYS;
    give_up("STATX_MNT_ID");
  }
  if (order.root.stx_uid == order.owner && order.root.stx_gid == order.group) {
    totals.already = 1;
  } else if (fchown(fd, order.owner, order.group)) {
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

static struct directory *take_order(char **arguments) {
  struct directory *root = make_subdirectory(NULL, "");
  root->fd = (int)number(arguments[2]);
  order.owner = (uid_t)number(arguments[3]);
  order.group = (gid_t)number(arguments[4]);
  order.is_whole = number(arguments[6]);
  order.looks_at_all = !order.is_whole || number(arguments[7]);
  if (!order.owner || !order.group || order.owner == (uid_t)-1 ||
      order.group == (gid_t)-1) {
    errno = EINVAL;
    give_up("uid or gid");
  }
  if (lseek(root->fd, 0, SEEK_SET)) give_up("root");
  return root;
}

/* As many as there are processors at first, unless the caller knows how many. */
static unsigned choose_threads(unsigned ordered) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed)) give_up("sched_getaffinity");
  order.processors = (unsigned)CPU_COUNT(&allowed);
  if (ordered) return order.thread_limit = ordered;
  if (order.processors < FEWEST_THREADS) return FEWEST_THREADS;
  return order.processors < MOST_FIRST_THREADS ? order.processors : MOST_FIRST_THREADS;
}

static void start(struct directory *root, unsigned wanted) {
  root->is_entered = true;
  root->inode = order.root.stx_ino;
  root->users = root->holders = 2; /* its reading, and so that it stays open */
  opened = 1;
  pthread_mutex_lock(&lock);
  push(root);
  add_threads(wanted);
  if (!threads) give_up("pthread_create");
  pthread_mutex_unlock(&lock);
}

int main(int count, char **arguments) {
  if (count != 8) {
    fputs("usage: own PARENT_PID ROOT_FD UID GID THREADS IS_WHOLE HAS_MOUNTS\n",
          stderr);
    return 2;
  }
  die_with((pid_t)number(arguments[1]));
  struct directory *root = take_order(arguments);
  open_many_files();
  if (!own_root(root->fd)) return 0;
  start(root, choose_threads((unsigned)number(arguments[5])));
  wait_until_over();
  name_links_left();
  say_counts("ended", &totals);
  return 0;
}
