// Preloaded: makes the Nth call that changes files below a folder fail, or ends the process there.
//
// PASSLIB_FAIL_BELOW   the folder
// fail_at(n, mode)     from Python by ctypes: n counts from 1, 0 fails nothing and counts only;
//                      mode 0 fails with EIO, mode 1 ends the process as kill -9 would, mode 2
//                      fills the disk: what needs space fails with ENOSPC from then on
// calls_seen()         how many calls there were since
// limit_copies(f, l)   each copy between files is of at most so many bytes, the first and later
// ones,
//                      or fails with EXDEV where that is -1; prints size and places of each
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

static long next_to_fail = 0, seen = 0;
static int mode_of_failure = 0;

void fail_at(long number, int mode) {
  next_to_fail = number;
  mode_of_failure = mode;
  seen = 0;
}
long calls_seen(void) { return seen; }

static long most_copied = LONG_MAX, most_copied_later = LONG_MAX;
static int prints_copies = 0;

void limit_copies(long first, long later) {
  most_copied = first;
  most_copied_later = later;
  prints_copies = 1;
}

static int below(const char* path) {
  const char* folder = getenv("PASSLIB_FAIL_BELOW");
  return folder && path && strncmp(path, folder, strlen(folder)) == 0;
}

static int below_fd(int file) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return below(path);
}

// Whether this call fails. Ends the process where that is asked for.
static int fails_as(int concerns, int needs_space) {
  if (!concerns) return 0;
  ++seen;
  if (mode_of_failure == 2) {
    errno = ENOSPC;
    return needs_space && next_to_fail && seen >= next_to_fail;
  }
  if (seen != next_to_fail) return 0;
  if (mode_of_failure == 1) _exit(137);
  errno = EIO;
  return 1;
}
static int fails(int concerns) { return fails_as(concerns, 0); }
static int fails_full(int concerns) { return fails_as(concerns, 1); }

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void* data, size_t size) {
  if (fails_full(below_fd(file))) return -1;
  return REAL(write)(file, data, size);
}
ssize_t pwrite(int file, const void* data, size_t size, off_t at) {
  if (fails_full(below_fd(file))) return -1;
  return REAL(pwrite)(file, data, size, at);
}
ssize_t pwrite64(int file, const void* data, size_t size, off64_t at) {
  if (fails_full(below_fd(file))) return -1;
  return REAL(pwrite64)(file, data, size, at);
}
size_t fwrite(const void* data, size_t size, size_t count, FILE* stream) {
  if (fails_full(below_fd(fileno(stream)))) return 0;
  return REAL(fwrite)(data, size, count, stream);
}
ssize_t writev(int file, const struct iovec* parts, int count) {
  if (fails_full(below_fd(file))) return -1;
  return REAL(writev)(file, parts, count);
}
int fsync(int file) {
  if (fails(below_fd(file))) return -1;
  return REAL(fsync)(file);
}
int ftruncate(int file, off_t size) {
  if (fails(below_fd(file))) return -1;
  return REAL(ftruncate)(file, size);
}
int ftruncate64(int file, off64_t size) {
  if (fails(below_fd(file))) return -1;
  return REAL(ftruncate64)(file, size);
}
int rename(const char* from, const char* to) {
  if (fails(below(to))) return -1;
  return REAL(rename)(from, to);
}
int unlink(const char* path) {
  if (fails(below(path))) return -1;
  return REAL(unlink)(path);
}
int link(const char* from, const char* to) {
  if (fails_full(below(to))) return -1;
  return REAL(link)(from, to);
}
int linkat(int old, const char* from, int new, const char* to, int flags) {
  if (fails_full(below(to))) return -1;
  return REAL(linkat)(old, from, new, to, flags);
}
int setxattr(const char* path, const char* name, const void* value, size_t size, int flags) {
  if (fails_full(below(path))) return -1;
  return REAL(setxattr)(path, name, value, size, flags);
}
int mkdir(const char* path, mode_t mode) {
  if (fails_full(below(path))) return -1;
  return REAL(mkdir)(path, mode);
}
ssize_t copy_file_range(int from, off64_t* at, int to, off64_t* place, size_t size,
                        unsigned flags) {
  if (fails_full(below_fd(to))) return -1;
  const long most = most_copied;
  if (prints_copies) {
    const off64_t target = place ? *place : lseek64(to, 0, SEEK_CUR);
    fprintf(stderr, "copy %zu %ld %ld\n", size, at ? (long)*at : -1L, (long)target);
    most_copied = most_copied_later;
  }
  if (most < 0) {
    errno = EXDEV;
    return -1;
  }
  return REAL(copy_file_range)(from, at, to, place, size < (size_t)most ? size : (size_t)most,
                               flags);
}
ssize_t sendfile(int to, int from, off_t* at, size_t size) {
  if (fails_full(below_fd(to))) return -1;
  return REAL(sendfile)(to, from, at, size);
}
int fchmod(int file, mode_t mode) {
  if (fails(below_fd(file))) return -1;
  return REAL(fchmod)(file, mode);
}
int chmod(const char* path, mode_t mode) {
  if (fails(below(path))) return -1;
  return REAL(chmod)(path, mode);
}
int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (fails_as((flags & (O_CREAT | O_WRONLY | O_RDWR)) && below(path), flags & O_CREAT)) return -1;
  return REAL(open)(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (fails_as((flags & (O_CREAT | O_WRONLY | O_RDWR)) && below(path), flags & O_CREAT)) return -1;
  return REAL(open64)(path, flags, mode);
}
