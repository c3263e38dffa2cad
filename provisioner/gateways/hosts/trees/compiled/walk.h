/* Gives a tree to an owner, or removes what is in it: everything below one open
   directory, with many threads.

     walk PARENT_PID SILENT_SECONDS ROOT_FD HAS_MOUNTS own UID GID IS_WHOLE
     walk PARENT_PID SILENT_SECONDS ROOT_FD HAS_MOUNTS remove

   It never sees a path: it is given an open directory, and every name is looked up in
   the open directory that it was read from, without following a link. So nothing that
   happens to the tree meanwhile leads out of it. Where it was not built,
   `sequential.py` does the same and says the same JSON lines.

   The walk says that it is ready, and begins when the worker answers 'B'. One that may
   still act goes on saying so on standard input; after SILENT_SECONDS without a word, or
   at the worker's end, the walk ends at once. HAS_MOUNTS 1 says that something is mounted in the tree; IS_WHOLE 1 that
   the tree is all there is of its filesystem, so that no file in it has a name outside.

   main.c starts it, walk.c reads directories, stacks.c keeps those that are to be read,
   entries.c acts on names, links.c decides about files with several names,
   directories.c keeps descriptors, tell.c writes what the caller reads, mind.c ends us
   with our worker.

   Needs Linux 5.8, for STATX_MNT_ID. Source: statx(2), openat(2), fchownat(2),
   unlinkat(2), getdents64(2). */
#pragma once
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#ifndef STATX_MNT_ID
#error "The headers are older than Linux 5.8."
#endif

/* What a run was ordered to do, and can; written before there are threads. */
struct order {
  uid_t owner;
  gid_t group;
  bool removes, has_mounts, is_whole, looks_at_all;
  struct statx root;
  unsigned most_open, thread_limit, processors;
};

/* A directory of the tree; changed under `lock` alone. */
struct directory {
  struct directory *parent;
  struct directory *older, *newer; /* on its stack; `older` links a list before */
  int fd;           /* -1 before it is entered, and when it was closed meanwhile */
  unsigned users;   /* threads that use the descriptor now, and its reading */
  unsigned waiting; /* subdirectories to be opened from it, or removed */
  unsigned holders; /* who needs this record: itself, subdirectories, linked names */
  bool is_entered;
  _Atomic bool stays; /* it has something in it that is not removed */
  uint64_t inode; /* known once it is entered */
  char name[];
};

/* The words of the report. */
struct counts {
  uint64_t entries, done, already, privileged, vanished, failed, skipped;
};

/* As linux/dirent.h has it; libc shows another one. */
struct listed {
  uint64_t inode;
  int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[];
};

extern struct order order;

/* Everything below, each directory, and what files keep for themselves, is changed
   under this lock. */
extern pthread_mutex_t lock;
extern pthread_cond_t is_over;
extern unsigned unfinished; /* directories on a stack or in a thread's hands */
extern unsigned opened, threads;
extern struct counts totals;

/* main.c */
_Noreturn void give_up(const char *what);
void *allocate(size_t bytes);

/* tell.c: `name` "" is the directory itself. */
void say_counts(const char *kind, const struct counts *counts);
void add_counts(struct counts *to, const struct counts *more);
void skip(struct directory *directory, const char *name, struct counts *counts);
void fail(struct directory *directory, const char *name, int error,
          struct counts *counts);
void miss(struct directory *directory, const char *name, int error,
          struct counts *counts);

/* directories.c: the first two under `lock`. */
void waits_no_more(struct directory *directory);
void let_go(struct directory *directory, struct counts *counts);
struct directory *make_subdirectory(struct directory *parent, const char *name);
bool is_elsewhere(const struct statx *found);
int open_directory(int parent_fd, const char *name);
int look(int fd, const char *name, struct statx *found);
int borrow(struct directory *directory);
void give_back(struct directory *directory, int fd);

/* entries.c */
bool loses_privilege(mode_t mode);
bool change_found(struct directory *directory, int fd, const char *name,
                  const struct statx *found, struct counts *counts);
void act_on_name(struct directory *directory, int fd, const char *name,
                 struct counts *counts);
void act_on_names(struct directory *directory, int fd, const char *chunk, ssize_t size,
                  struct counts *counts);
void remove_emptied(struct directory *directory, struct counts *counts);

/* links.c */
void meet_link(struct directory *directory, const char *name,
               const struct statx *found, struct counts *counts);
void name_links_left(void);

/* stacks.c: `push` under `lock`. */
void make_stack(void);
void push(struct directory *directory);
struct directory *take(void);
void finish_one(const struct counts *counts);

/* mind.c */
void mind_worker(const char *silent_seconds);

/* walk.c: under `lock`. */
void add_threads(unsigned wanted);
