// Files of shared libraries, checked before the dynamic linker sees them.
#ifndef PASSLIB_LIBRARY_ELF_H_
#define PASSLIB_LIBRARY_ELF_H_

#include <string>
#include <vector>

namespace passlib {

/// Throws LoadError: "cannot load library '<path>': <reason>".
[[noreturn]] void refuseLibrary(const std::string& path, const std::string& reason);

/// Refuses a file that is missing, not a shared library, truncated or built for another machine,
/// with a clearer message than the dynamic linker's; a truncated file would crash it.
void checkLibraryFile(const std::string& path);

/// Returns the symbols of a library, sorted, that the dynamic linker shares between all libraries
/// of the process that define them; without those of the standard library.
std::vector<std::string> uniqueSymbols(const std::string& path);

/// Returns a symbol as C++ spells it, in quotes.
std::string readableSymbol(const std::string& name);

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_ELF_H_
