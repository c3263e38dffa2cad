/* Preloaded, it adds a millisecond to every call that changes an owner or removes a
   name: what the round trip to an NFS server costs. MILLISECONDS may be another number
   below 1000. */
#define _GNU_SOURCE
#ifndef MILLISECONDS
#define MILLISECONDS 1
#endif
#include <dlfcn.h>
#include <sys/types.h>
#include <time.h>

static int (*real_chown)(const char *, uid_t, gid_t);
static int (*real_lchown)(const char *, uid_t, gid_t);
static int (*real_fchown)(int, uid_t, gid_t);
static int (*real_fchownat)(int, const char *, uid_t, gid_t, int);
static int (*real_unlinkat)(int, const char *, int);

__attribute__((constructor)) static void find_real(void) {
  *(void **)&real_chown = dlsym(RTLD_NEXT, "chown");
  *(void **)&real_lchown = dlsym(RTLD_NEXT, "lchown");
  *(void **)&real_fchown = dlsym(RTLD_NEXT, "fchown");
  *(void **)&real_fchownat = dlsym(RTLD_NEXT, "fchownat");
  *(void **)&real_unlinkat = dlsym(RTLD_NEXT, "unlinkat");
}

static void travel(void) {
  struct timespec round_trip = {0, MILLISECONDS * 1000000L};
  nanosleep(&round_trip, 0);
}

int chown(const char *path, uid_t uid, gid_t gid) {
  travel();
  return real_chown(path, uid, gid);
}

int lchown(const char *path, uid_t uid, gid_t gid) {
  travel();
  return real_lchown(path, uid, gid);
}

int fchown(int fd, uid_t uid, gid_t gid) {
  travel();
  return real_fchown(fd, uid, gid);
}

int fchownat(int fd, const char *path, uid_t uid, gid_t gid, int flags) {
  travel();
  return real_fchownat(fd, path, uid, gid, flags);
}

int unlinkat(int fd, const char *path, int flags) {
  travel();
  return real_unlinkat(fd, path, flags);
}
