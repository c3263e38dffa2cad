/* Directories and their descriptors. */
#include "walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const unsigned LOOKED_FOR = STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_UID |
                                   STATX_GID | STATX_INO | STATX_MNT_ID;

static void close_if_unneeded(struct directory *directory) {
  if (directory->fd < 0 || directory->users) return;
  if (directory->waiting && opened <= order.most_open) return;
  close(directory->fd);
  directory->fd = -1;
  opened--;
}

/* Take note that one subdirectory less is waiting. */
void waits_no_more(struct directory *directory) {
  directory->waiting--;
  close_if_unneeded(directory);
}

/* Give up one hold. Who gives up the last one of a directory has seen all of it done,
   and removes it, where that is the order. The root is held to the end. */
void let_go(struct directory *directory, struct counts *counts) {
  while (!--directory->holders) {
    struct directory *parent = directory->parent;
    if (order.removes) {
      remove_emptied(directory, counts);
      waits_no_more(parent);
    }
    free(directory);
    directory = parent;
  }
}

struct directory *make_subdirectory(struct directory *parent, const char *name) {
  size_t length = strlen(name) + 1;
  struct directory *made = allocate(sizeof *made + length);
  memcpy(made->name, name, length);
  made->parent = parent;
  made->fd = -1;
  made->holders = 1;
  return made;
}

bool is_elsewhere(const struct statx *found) {
  return found->stx_dev_major != order.root.stx_dev_major ||
         found->stx_dev_minor != order.root.stx_dev_minor ||
         found->stx_mnt_id != order.root.stx_mnt_id;
}

int look(int fd, const char *name, struct statx *found) {
  int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (*name ? 0 : AT_EMPTY_PATH);
  return statx(fd, name, flags, LOOKED_FOR, found);
}

int open_directory(int parent_fd, const char *name) {
  return openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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
    int below = open_directory(fd, way[step]->name);
    int error = errno;
    close(fd);
    errno = error;
    fd = below;
  }
  free(way);
  struct statx found;
  if (fd >= 0 && (look(fd, "", &found) || is_elsewhere(&found) ||
                  found.stx_ino != directory->inode)) {
    close(fd);
    errno = ENOENT;
    return -1;
  }
  return fd;
}

/* Return a descriptor to act on names with, or -1; `give_back` takes it. */
int borrow(struct directory *directory) {
  pthread_mutex_lock(&lock);
  int fd = directory->fd;
  if (fd >= 0) directory->users++;
  pthread_mutex_unlock(&lock);
  return fd >= 0 ? fd : reopen(directory);
}

void give_back(struct directory *directory, int fd) {
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
