#include <cstdlib>

#include "platform/system.h"

namespace passlib::platform {

#if PASSLIB_LINUX && defined(__GLIBC__)
void atExit(void (*function)(int status)) {
  on_exit([](int status, void* data) { reinterpret_cast<void (*)(int)>(data)(status); },
          reinterpret_cast<void*>(function));
}
#else
namespace {

constexpr int kMost = 8;
void (*functions[kMost])(int status) = {};
int count = 0;

}  // namespace

void atExit(void (*function)(int status)) {
  if (count == kMost) return;
  functions[count++] = function;
  std::atexit([]() { functions[--count](kUnknownStatus); });
}
#endif

}  // namespace passlib::platform
