// The dynamic linker, and the files that it has.
#ifndef PASSLIB_LIBRARY_OPENING_LINKER_H_
#define PASSLIB_LIBRARY_OPENING_LINKER_H_

#include <string>

namespace passlib {

/// Opens the file of a library, also where the linker has an older file of the same path. Throws
/// LoadError for a file that checkLibraryFile or the linker refuses, that was overwritten while it
/// was loaded, whose static initializers fail, or that would share data with its earlier build.
void* openLibraryFile(const std::string& path);

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_OPENING_LINKER_H_
