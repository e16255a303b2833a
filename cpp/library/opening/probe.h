// A library's static initializers, tried in a child process first.
#ifndef PASSLIB_LIBRARY_OPENING_PROBE_H_
#define PASSLIB_LIBRARY_OPENING_PROBE_H_

#include <string>

namespace passlib {

/// dlopen for libraries whose static initializers may throw, with RTLD_NOW and RTLD_LOCAL:
/// compilers take dlopen itself for a function that never throws, and drop the handlers around it.
void* openThrowing(const std::string& path);

/// Loads a library in a forked child. Returns why it cannot be loaded in this process, as a clause:
/// a static initializer throws, crashes or ends the process. "" if it can, if the linker refuses
/// it, which it then does here too, or if the child gave no answer in time.
///
/// An exception that leaves a static initializer unwinds through dlopen, which keeps the linker's
/// lock and a library whose later initializers never ran.
std::string failureToStart(const std::string& path);

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_OPENING_PROBE_H_
