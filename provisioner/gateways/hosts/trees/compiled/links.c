/* Files with several names: given away when all of them were met below the root. */
#include "walk.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static void *links; /* `struct linked`, as tsearch(3) keeps them */

static int compare_links(const void *one, const void *other) {
  uint64_t left = ((const struct linked *)one)->inode;
  uint64_t right = ((const struct linked *)other)->inode;
  return (left > right) - (left < right);
}

static bool is_met(const struct linked *file, const struct directory *directory,
                   const char *name) {
  for (const struct linked_name *at = file->first; at; at = at->next)
    if (at->directory->inode == directory->inode && !strcmp(at->name, name))
      return true;
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
  /* Its directory may have been moved, and read once more. */
  if (is_met(file, directory, name)) return NULL;
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

static void forget_link(struct linked *file, struct counts *counts) {
  for (struct linked_name *at = file->first, *next; at; at = next) {
    next = at->next;
    let_go(at->directory, counts);
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
  else if (found.stx_uid == order.owner && found.stx_gid == order.group)
    one.already = file->met;
  else if (fchownat(fd, name, order.owner, order.group, AT_SYMLINK_NOFOLLOW))
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
void meet_link(struct directory *directory, const char *name,
               const struct statx *found, struct counts *counts) {
  pthread_mutex_lock(&lock);
  struct linked *file = add_link(directory, name, found);
  pthread_mutex_unlock(&lock);
  if (!file) return;
  change_linked(file, counts);
  pthread_mutex_lock(&lock);
  forget_link(file, counts);
  pthread_mutex_unlock(&lock);
}

static void name_left_over(const void *node, VISIT visit, int depth) {
  (void)depth;
  if (visit != postorder && visit != leaf) return;
  const struct linked *file = *(struct linked *const *)node;
  for (const struct linked_name *at = file->first; at; at = at->next)
    fail(at->directory, at->name, EMLINK, &totals);
}

/* Name the files that have names elsewhere, when everything has been met. */
void name_links_left(void) { twalk(links, name_left_over); }
