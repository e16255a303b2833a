#include <cxxabi.h>

#include <cstdlib>
#include <memory>

#include "errors.h"
#include "header.h"
#include "platform/library_file.h"

namespace passlib {

std::string readableSymbol(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return mxnet::ext::host::quoted(readable == nullptr ? name : readable.get());
}

void refuseLibrary(const std::string& path, const std::string& reason) {
  throw LoadError("cannot load library " + mxnet::ext::host::quoted(path) + ": " + reason);
}

}  // namespace passlib
