/* What is still to be done: a stack for each thread.

   So each goes its own way through the tree. Threads that act on neighbors wait for
   each other: in btrfs those lie in one leaf, and a leaf is locked while the changes
   of the last moment are written to it. A thread with an empty stack takes the oldest
   of another's, which has the most below it. */
#include "walk.h"

struct stack {
  struct stack *other; /* all of them, in a ring */
  struct directory *newest, *oldest;
};

static struct stack of_main = {.other = &of_main};
static struct stack *asked_last = &of_main;
static _Thread_local struct stack *mine = &of_main;
static pthread_cond_t has_work = PTHREAD_COND_INITIALIZER;

/* Give this thread a stack of its own. */
void make_stack(void) {
  mine = allocate(sizeof *mine);
  pthread_mutex_lock(&lock);
  mine->other = of_main.other;
  of_main.other = mine;
  pthread_mutex_unlock(&lock);
}

void push(struct directory *directory) {
  directory->older = mine->newest;
  directory->newer = NULL;
  if (mine->newest)
    mine->newest->newer = directory;
  else
    mine->oldest = directory;
  mine->newest = directory;
  unfinished++;
  pthread_cond_signal(&has_work);
}

static struct directory *take_newest(void) {
  struct directory *taken = mine->newest;
  if (!taken) return NULL;
  mine->newest = taken->older;
  if (mine->newest)
    mine->newest->newer = NULL;
  else
    mine->oldest = NULL;
  return taken;
}

static struct directory *take_oldest(struct stack *from) {
  struct directory *taken = from->oldest;
  from->oldest = taken->newer;
  if (from->oldest)
    from->oldest->older = NULL;
  else
    from->newest = NULL;
  return taken;
}

/* Ask the others, the one first that had something the last time. */
static struct directory *take_from_others(void) {
  struct stack *asked = asked_last;
  do {
    if (asked->oldest) {
      asked_last = asked;
      return take_oldest(asked);
    }
    asked = asked->other;
  } while (asked != asked_last);
  return NULL;
}

/* Wait for a directory that is to be entered or read on; NULL when all is done. */
struct directory *take(void) {
  struct directory *taken;
  pthread_mutex_lock(&lock);
  while (!(taken = take_newest()) && !(taken = take_from_others()) && unfinished)
    pthread_cond_wait(&has_work, &lock);
  pthread_mutex_unlock(&lock);
  return taken;
}

/* Say that what was taken is done; what it led to has been pushed. */
void finish_one(const struct counts *counts) {
  pthread_mutex_lock(&lock);
  add_counts(&totals, counts);
  if (!--unfinished) {
    pthread_cond_broadcast(&has_work);
    pthread_cond_signal(&is_over);
  }
  pthread_mutex_unlock(&lock);
}
