#include "model/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "errors.h"
#include "onnx/external/places.h"
#include "onnx/parts/tensor.h"
#include "onnx/text/strings.h"

namespace passlib::model {

namespace {

using onnx::shown;

/// A file descriptor that is closed at the end of a scope.
struct Descriptor {
  explicit Descriptor(int file) : number(file) {}
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number;
};

/// The path without links; empty if there is no such file.
std::string realPath(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  return real == nullptr ? "" : real.get();
}

bool leadsOut(const std::string& location) {
  if (location[0] == '/' || location.find('\0') != std::string::npos ||
      location.find('\\') != std::string::npos) {
    return true;
  }
  const std::string framed = "/" + location + "/";
  return framed.find("/../") != std::string::npos;
}

bool isInside(const std::string& folder, const std::string& path) {
  if (path == folder || folder == "/") return true;
  return path.compare(0, folder.size() + 1, folder + "/") == 0;
}

/// A sum that may need more than 64 bits, in digits; both numbers are below 10^19.
std::string sumOf(uint64_t left, uint64_t right) {
  constexpr uint64_t kHalf = 1000000000;
  const uint64_t low = left % kHalf + right % kHalf;
  const uint64_t high = left / kHalf + right / kHalf + low / kHalf;
  if (high == 0) return std::to_string(low % kHalf);
  const std::string end = std::to_string(low % kHalf);
  return std::to_string(high) + std::string(9 - end.size(), '0') + end;
}

}  // namespace

std::shared_ptr<const FileMapping> mapFile(const std::string& path) {
  // A pipe must not block.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat state{};
  if (file.number < 0 || ::fstat(file.number, &state) != 0) {
    throw std::system_error(errno, std::generic_category(), path);
  }
  if (S_ISDIR(state.st_mode)) throw std::system_error(EISDIR, std::generic_category(), path);
  if (!S_ISREG(state.st_mode)) throw FormatError(path + ": this is no regular file");
  if (state.st_size == 0) return nullptr;
  return std::make_shared<FileMapping>(file.number, path);
}

std::string folderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string resolveData(const std::string& folder, const std::string& location,
                        const std::string& what) {
  if (leadsOut(location)) {
    throw FormatError(what + ": the location " + shown(location) +
                      " of external data leads out of the model's folder; it must be a plain path "
                      "relative to it");
  }
  const std::string path = folder + "/" + location;
  struct stat state{};
  if (::lstat(path.c_str(), &state) != 0 && errno != ENOENT) {
    const std::string reason = std::strerror(errno);
    throw FormatError(what + ": no file can be at the location " + shown(location.substr(0, 80)) +
                      (location.size() > 80 ? "..." : "") + " of external data: " + reason);
  }
  const std::string real = realPath(path);
  if (!real.empty() && !isInside(realPath(folder), real)) {
    throw FormatError(what + ": the location " + shown(location) +
                      " of external data is a link out of the model's folder; put the file itself "
                      "there");
  }
  if (real.empty() || ::stat(real.c_str(), &state) != 0 || !S_ISREG(state.st_mode)) {
    throw FormatError(what + ": there is no file " + shown(location) + " next to the model");
  }
  return real;
}

std::shared_ptr<const FileMapping> Folder::file(const std::string& location,
                                                const std::string& what) {
  const std::string path = resolveData(path_, location, what);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = files_.find(path);
  if (found != files_.end()) return found->second;
  return files_[path] = mapFile(path);
}

onnx::Bytes dataIn(const FileMapping* file, const onnx::Tensor& tensor,
                   const onnx::DataPlace& place, const std::string& what) {
  const std::size_t all = file == nullptr ? 0 : file->size();
  const bool fits = place.offset <= all && (!place.length || *place.length <= all - place.offset);
  if (!fits) {
    const std::string end = place.length ? sumOf(place.offset, *place.length) : std::to_string(all);
    throw FormatError(what + ": external data from byte " + std::to_string(place.offset) + " to " +
                      end + ", but " + shown(place.location) + " has " + std::to_string(all) +
                      " bytes");
  }
  const std::size_t count = onnx::countElements(tensor.dims, [&what] { return what; });
  const onnx::ElementType* const type = onnx::elementType(tensor.type);
  const std::size_t given = place.length ? *place.length : all - place.offset;
  const char* const start = file == nullptr ? "" : file->data() + place.offset;
  if (type == nullptr) return {start, given};
  const std::size_t size = count * type->size;
  if (given < size || (place.length && given != size)) {
    throw FormatError(what + ": " + std::to_string(given) +
                      " bytes of external data, but dimensions " + onnx::listed(tensor.dims) +
                      " of " + type->name + " take " + std::to_string(size));
  }
  return {start, size};
}

std::optional<Array> Folder::array(const onnx::Constant& constant) {
  const std::string what = constant.place();
  onnx::Tensor tensor = onnx::readTensor(constant.message);
  const onnx::DataPlace place = onnx::placeOf(tensor.message, what);
  std::shared_ptr<const FileMapping> data = file(place.location, what);
  const onnx::Bytes bytes = dataIn(data.get(), tensor, place, what);
  if (onnx::elementType(tensor.type) == nullptr) return std::nullopt;
  return Array{tensor.type, std::move(tensor.dims), bytes, std::move(data)};
}

std::size_t Folder::size() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::size_t sum = 0;
  for (const auto& [path, mapping] : files_) sum += mapping == nullptr ? 0 : mapping->size();
  return sum;
}

void Folder::check() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [path, mapping] : files_) {
    if (mapping != nullptr) mapping->check();
  }
}

}  // namespace passlib::model
