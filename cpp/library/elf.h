// Files of shared libraries, checked before the dynamic linker sees them.
#ifndef PASSLIB_LIBRARY_ELF_H_
#define PASSLIB_LIBRARY_ELF_H_

#include <string>

namespace passlib {

/// Throws LoadError: "cannot load library '<path>': <reason>".
[[noreturn]] void refuseLibrary(const std::string& path, const std::string& reason);

/// Refuses a file that is missing, not a shared library, truncated or built for another machine,
/// with a clearer message than the dynamic linker's; a truncated file would crash it.
void checkLibraryFile(const std::string& path);

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_ELF_H_
