/* What is done to names: given to the owner, or removed. */
#include "walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Names of a chunk that are looked at before the rest is taken to be alike. */
enum { NAMES_LOOKED_AT = 4 };

/* setgid without group execute means mandatory locking, which chown leaves. */
bool loses_privilege(mode_t mode) {
  bool is_setgid = (mode & S_ISGID) && (mode & S_IXGRP);
  return S_ISREG(mode) && ((mode & S_ISUID) || is_setgid);
}

static bool change_unseen(struct directory *directory, int fd, const char *name,
                          struct counts *counts) {
  int failed = *name ? fchownat(fd, name, order.owner, order.group, AT_SYMLINK_NOFOLLOW)
                     : fchown(fd, order.owner, order.group);
  if (failed) {
    miss(directory, name, errno, counts);
    return false;
  }
  counts->done++;
  counts->entries++;
  return true;
}

/* Change what was found unless it is right; say whether it was changed. */
bool change_found(struct directory *directory, int fd, const char *name,
                  const struct statx *found, struct counts *counts) {
  if (found->stx_uid == order.owner && found->stx_gid == order.group) {
    counts->already++;
    counts->entries++;
    return false;
  }
  if (!change_unseen(directory, fd, name, counts)) return false;
  counts->privileged += loses_privilege(found->stx_mode);
  return true;
}

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
  if (found.stx_nlink > 1 && !order.is_whole && !S_ISDIR(found.stx_mode)) {
    meet_link(directory, name, &found, counts);
    return false;
  }
  return change_found(directory, fd, name, &found, counts);
}

static bool remove_name(struct directory *directory, int fd, const char *name,
                        int flags, struct counts *counts) {
  struct statx found;
  if (order.has_mounts && !look(fd, name, &found) && is_elsewhere(&found)) {
    skip(directory, name, counts);
    return false;
  }
  if (unlinkat(fd, name, flags)) {
    miss(directory, name, errno, counts);
    return false;
  }
  counts->done++;
  counts->entries++;
  return true;
}

void act_on_name(struct directory *directory, int fd, const char *name,
                 struct counts *counts) {
  if (order.removes)
    remove_name(directory, fd, name, 0, counts);
  else
    change_name(directory, fd, name, counts);
}

/* In a filesystem that is all ours, a chunk in which the first names all had to be
   changed is finished without looking: changing what is right does no harm. */
void act_on_names(struct directory *directory, int fd, const char *chunk, ssize_t size,
                  struct counts *counts) {
  unsigned position = 0, changed = 0;
  for (const char *at = chunk; at < chunk + size;) {
    const struct listed *entry = (const struct listed *)at;
    at += entry->length;
    if (entry->type == DT_DIR) continue;
    bool is_seen =
        order.looks_at_all || position < NAMES_LOOKED_AT || changed < position;
    if (order.removes)
      remove_name(directory, fd, entry->name, 0, counts);
    else
      changed += is_seen ? change_name(directory, fd, entry->name, counts)
                         : change_unseen(directory, fd, entry->name, counts);
    position++;
  }
}

/* Remove a directory in which nothing is left; what leads to one that stays does, too.
   Under `lock`, which others may have meanwhile. */
void remove_emptied(struct directory *directory, struct counts *counts) {
  struct directory *parent = directory->parent;
  if (directory->stays) parent->stays = true;
  if (directory->stays || !directory->is_entered) return;
  pthread_mutex_unlock(&lock);
  int fd = borrow(parent);
  if (fd < 0)
    miss(parent, directory->name, errno, counts);
  else
    remove_name(parent, fd, directory->name, AT_REMOVEDIR, counts);
  give_back(parent, fd);
  pthread_mutex_lock(&lock);
}
