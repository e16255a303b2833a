// Files of text.
#ifndef PASSLIB_LIBRARY_TEXT_FILE_H_
#define PASSLIB_LIBRARY_TEXT_FILE_H_

#include <string>

namespace passlib {

/// The text of a file in UTF-8. Throws FormatError, std::system_error.
std::string readText(const std::string& path);

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_TEXT_FILE_H_
