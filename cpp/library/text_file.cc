#include "library/text_file.h"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include "errors.h"

namespace passlib {

std::string readText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::system_error(errno, std::generic_category(), path);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!isUtf8(text)) throw FormatError(path + ": this is no text in UTF-8");
  return text;
}

}  // namespace passlib
