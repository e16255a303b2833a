// Files of shared libraries, checked before the dynamic linker sees them.
#ifndef PASSLIB_PLATFORM_LIBRARY_FILE_H_
#define PASSLIB_PLATFORM_LIBRARY_FILE_H_

#include <string>
#include <vector>

namespace passlib {

/// Throws LoadError: "cannot load library '<path>': <reason>".
[[noreturn]] void refuseLibrary(const std::string& path, const std::string& reason);

/// Refuses a file that is missing, not a shared library, truncated or built for another machine,
/// with a clearer message than the dynamic linker's; a truncated file would crash it.
void checkLibraryFile(const std::string& path);

/// Facts from the file of a library; none of its code runs.
struct LibraryFile {
  std::string machine;
  std::vector<std::string> exports;    ///< dynamic symbols that it defines
  std::vector<std::string> imports;    ///< dynamic symbols that others must define
  std::vector<std::string> needed;     ///< libraries by the names that the linker looks for
  std::vector<std::string> versions;   ///< of symbols in those, such as GLIBC_2.34
  std::vector<std::string> compilers;  ///< as compilers and linkers state themselves
};

/// Reads a shared library for any 64-bit machine with the byte order of this one. Throws LoadError.
LibraryFile readLibraryFile(const std::string& path);

/// Returns the symbols of a library, sorted, that the dynamic linker shares between all libraries
/// of the process that define them; without those of the standard library.
std::vector<std::string> uniqueSymbols(const std::string& path);

/// Returns a symbol as C++ spells it, in quotes.
std::string readableSymbol(const std::string& name);

}  // namespace passlib

#endif  // PASSLIB_PLATFORM_LIBRARY_FILE_H_
