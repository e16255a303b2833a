// What differs between systems, as passlib uses it; with -DPASSLIB_PORTABLE, what other systems
// than Linux use. argv[1]: a library; argv[2]: a path to write to.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <thread>

#include "errors.h"
#include "platform/library_file.h"
#include "platform/system.h"

namespace {

using namespace passlib;

int failures = 0;

void check(bool fine, const char* what) {
  if (fine) return;
  std::cerr << "not so: " << what << "\n";
  ++failures;
}
#define CHECK(condition) check(condition, #condition)

void pipes() {
  int ends[2];
  CHECK(platform::openPipe(ends));
  CHECK((fcntl(ends[0], F_GETFD) & FD_CLOEXEC) != 0 && (fcntl(ends[1], F_GETFD) & FD_CLOEXEC) != 0);
  char letter = 0;
  CHECK(write(ends[1], "x", 1) == 1 && read(ends[0], &letter, 1) == 1 && letter == 'x');
  close(ends[0]);
  close(ends[1]);
}

/// A child exits with 3; its handlers run, the last one first, and the first ends it with 40 and
/// the status that it was told.
void ends() {
  static int calls = 0;
  const pid_t child = fork();
  if (child == 0) {
    platform::atExit([](int status) {
      _exit(calls == 1 ? 40 + (status == platform::kUnknownStatus ? 9 : status) : 1);
    });
    platform::atExit([](int) { ++calls; });
    std::exit(3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 43 || WEXITSTATUS(status) == 49));
#if PASSLIB_LINUX && defined(__GLIBC__)
  CHECK(WEXITSTATUS(status) == 43);
#endif
}

void threads() {
  CHECK(platform::isMainThread());
  bool is_main = true;
  std::thread([&]() { is_main = platform::isMainThread(); }).join();
  CHECK(!is_main);
}

/// A private mapping of a file, of whose pages one is written to.
void pages(const char* path) {
  const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(platform::reserveRoom(file, 4 * size));
  CHECK(ftruncate(file, static_cast<off_t>(4 * size)) == 0);
  struct stat state{};
  fstat(file, &state);
  const timespec now = platform::fileClock();
  CHECK(std::abs(now.tv_sec - platform::modifiedAt(state).tv_sec) < 60);
  CHECK(std::abs(now.tv_sec - platform::changedAt(state).tv_sec) < 60);
  void* const data = mmap(nullptr, 4 * size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | platform::flagOfSparse(), file, 0);
  CHECK(data != MAP_FAILED);
  (void)platform::bringIn(data, 4 * size);
  static_cast<char*>(data)[2 * size] = 1;
  bool may_differ[platform::PageMap::kMost];
  const std::size_t read =
      platform::PageMap().read(reinterpret_cast<uintptr_t>(data) / size, 4, may_differ);
  CHECK(read == 0 || (read == 4 && may_differ[2] && !may_differ[0] && !may_differ[3]));
  munmap(data, 4 * size);
  close(file);
}

std::string refusal(const std::string& path) {
  try {
    checkLibraryFile(path);
  } catch (const LoadError& error) {
    return error.what();
  }
  return "";
}

void libraries(const std::string& library, const std::string& other) {
  CHECK(refusal(library).empty());
  CHECK(refusal(other + "gone").find("does not exist") != std::string::npos);
  std::ofstream(other, std::ios::trunc).close();
  CHECK(refusal(other).find("the file is empty") != std::string::npos);
  try {
    CHECK(!readLibraryFile(library).exports.empty() && PASSLIB_LINUX);
  } catch (const LoadError& error) {
    CHECK(!PASSLIB_LINUX && std::strstr(error.what(), "on Linux only") != nullptr);
  }
  CHECK(readableSymbol("_ZN1a1bEv") == "'a::b()'" && readableSymbol("main") == "'main'");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  pipes();
  ends();
  threads();
  pages(arguments[2]);
  libraries(arguments[1], arguments[2]);
  std::cout << (PASSLIB_LINUX ? "Linux" : "portable") << ": " << failures << " failures\n";
  return failures == 0 ? 0 : 1;
}
