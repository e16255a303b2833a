#include "mxnet/params.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "errors.h"
#include "library/memory.h"

namespace passlib::symbols {

namespace {

using mxnet::ext::MXDType;

constexpr uint64_t kListMagic = 0x112;
constexpr uint32_t kFirstMagic = 0xF993FAC8;
constexpr uint32_t kCurrentMagic = 0xF993FAC9;
constexpr uint32_t kNumpyMagic = 0xF993FACA;

constexpr std::size_t kSmallestRecord = 4;
constexpr int32_t kMostDimensions = 32;
constexpr int32_t kMostTypes = 12;

/// By their numbers in the file.
constexpr const char* kStorages[] = {"default", "row_sparse", "csr"};

template <typename Number>
void append(Number number, std::string* out) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out->append(bytes, sizeof number);
}

std::string tupleOf(const std::vector<int64_t>& dims) {
  std::string text = "(";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
  }
  return text + (dims.size() == 1 ? ",)" : ")");
}

std::string inPython(const std::string& file, const std::string& what) {
  return file + ": " + what +
         ", which native hosts do not read: run the pipeline with passlib's Python package, as "
         "passlib opt";
}

class ListReader {
 public:
  ListReader(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  std::vector<ListedArray> read() {
    requireList();
    offset_ = 8;
    number<uint64_t>("the reserved word");
    const std::size_t count = counted("arrays", kSmallestRecord, "the file");
    std::vector<ListedArray> arrays;
    for (std::size_t i = 0; i < count; ++i) arrays.push_back(record(i));
    const std::size_t start = offset_;
    const std::size_t named = counted("names", 8, "the file");
    if (named != 0 && named != count) {
      fail(start, std::to_string(named) + " names for " + std::to_string(count) + " arrays");
    }
    std::set<std::string> seen;
    for (std::size_t i = 0; i < named; ++i) arrays[i].name = name(i);
    for (std::size_t i = 0; i < named; ++i) {
      if (seen.insert(arrays[i].name).second) continue;
      fail(start, "two arrays have the name '" + arrays[i].name + "'");
    }
    if (named == 0 && count > 0) {
      throw FormatError(file_ + ": the " + std::to_string(count) +
                        " arrays in it have no names; read it with passlib.nd.load");
    }
    return arrays;
  }

 private:
  [[noreturn]] void fail(std::size_t offset, const std::string& what) const {
    throw FormatError(file_ + ": at byte " + std::to_string(offset) + ": " + what, offset);
  }

  void requireList() const {
    uint64_t start = 0;
    if (bytes_.size() > 8) {
      std::memcpy(&start, bytes_.data(), 8);
      if (bytes_[8] == '{' && start <= bytes_.size() - 8) {
        throw UnsupportedError(inPython(file_, "this is a .safetensors file"));
      }
    }
    if (bytes_.substr(0, 2) == "PK") {
      throw UnsupportedError(inPython(file_, "this is an .npz archive"));
    }
    start = 0;
    std::memcpy(&start, bytes_.data(), std::min<std::size_t>(bytes_.size(), 8));
    if (bytes_.size() >= 8 && start == kListMagic) return;
    std::string begins;
    for (const char byte : bytes_.substr(0, 8)) {
      char text[4];
      std::snprintf(text, sizeof text, "%s%02x", begins.empty() ? "" : " ",
                    static_cast<unsigned>(static_cast<unsigned char>(byte)));
      begins += text;
    }
    fail(0, "this is no parameter file of MXNet: it begins with " +
                (begins.empty() ? "nothing" : begins) +
                ", not like a list of arrays (12 01), an .npz (50 4b) or an .npy (93 4e)");
  }

  /// Requires so many bytes at the present place.
  void require(std::size_t count, const std::string& what) const {
    const std::size_t left = bytes_.size() - offset_;
    if (count <= left) return;
    fail(offset_, what + " needs " + std::to_string(count) + " bytes, but the file has " +
                      std::to_string(left) + " more; it is truncated or damaged");
  }

  template <typename Number>
  Number number(const std::string& what) {
    require(sizeof(Number), what);
    Number made;
    std::memcpy(&made, bytes_.data() + offset_, sizeof made);
    offset_ += sizeof made;
    return made;
  }

  std::size_t counted(const std::string& items, std::size_t smallest, const std::string& of) {
    const std::size_t start = offset_;
    const auto count = number<uint64_t>("the number of " + items + " of " + of);
    const std::size_t left = bytes_.size() - offset_;
    if (count > left / smallest) {
      fail(start, of + " claims " + std::to_string(count) + " " + items + ", more than the " +
                      std::to_string(left) +
                      " bytes that follow can hold; it is truncated or damaged");
    }
    return static_cast<std::size_t>(count);
  }

  ListedArray record(std::size_t index) {
    const std::string what = "array " + std::to_string(index);
    const auto magic = number<uint32_t>("the magic number of " + what);
    if (magic == kCurrentMagic || magic == kNumpyMagic) return current(what, magic == kNumpyMagic);
    const std::size_t start = offset_ - 4;
    std::vector<int64_t> dims;
    if (magic == kFirstMagic) {
      dims = *shape(what, false);
    } else if (magic <= static_cast<uint32_t>(kMostDimensions)) {
      require(4 * static_cast<std::size_t>(magic), "the shape of " + what);
      for (uint32_t i = 0; i < magic; ++i) dims.push_back(number<uint32_t>("a dimension"));
    } else {
      char text[16];
      std::snprintf(text, sizeof text, "0x%08X", magic);
      fail(start, what + " begins with " + text + ", as in no known version");
    }
    if (dims.empty()) failShapeless(start, what);
    return withData(std::move(dims), what);
  }

  ListedArray current(const std::string& what, bool numpy_form) {
    std::size_t start = offset_;
    const auto storage = number<int32_t>("the storage type of " + what);
    // An array without a shape is written with the storage type "undefined".
    if (storage < -1 || storage > 2) {
      fail(start, what + " has storage type " + std::to_string(storage) + ", not 0, 1 or 2");
    }
    if (storage > 0) {
      if (numpy_form) {
        fail(start, what + " is " + kStorages[storage] + " in version 3, which is dense only");
      }
      throw UnsupportedError(inPython(file_, what + " is " + kStorages[storage]));
    }
    start = offset_;
    std::optional<std::vector<int64_t>> dims = shape(what, numpy_form);
    if (!dims || (dims->empty() && !numpy_form && !scalarFollows())) failShapeless(start, what);
    return withData(*std::move(dims), what);
  }

  [[noreturn]] void failShapeless(std::size_t start, const std::string& what) const {
    fail(start, what + " has no shape: it was saved before it was initialised");
  }

  /// Whether a record with 0 dimensions is an array without dimensions, not one without shape: the
  /// former is followed by device, type and data, the latter by another record or the number of
  /// names, which look like neither a device nor a type.
  bool scalarFollows() const {
    if (bytes_.size() - offset_ < 12) return false;
    int32_t found[3];
    std::memcpy(found, bytes_.data() + offset_, sizeof found);
    const bool is_device = found[0] == 1 || found[0] == 2 || found[0] == 3 || found[0] == 5;
    return is_device && found[1] >= 0 && found[1] < (1 << 16) && found[2] >= 0 &&
           found[2] <= kMostTypes;
  }

  /// Nothing for a shape that is not known, which only NumPy's form has.
  std::optional<std::vector<int64_t>> shape(const std::string& what, bool maybe_unknown) {
    const std::size_t start = offset_;
    const auto count = number<int32_t>("the number of dimensions of " + what);
    if (count == -1 && maybe_unknown) return std::nullopt;
    if (count < 0 || count > kMostDimensions) {
      fail(start, what + " claims " + std::to_string(count) + " dimensions, not 0 to " +
                      std::to_string(kMostDimensions));
    }
    require(8 * static_cast<std::size_t>(count), "the shape of " + what);
    std::vector<int64_t> dims;
    for (int32_t i = 0; i < count; ++i) dims.push_back(number<int64_t>("a dimension"));
    const auto isNegative = [](int64_t size) { return size < 0; };
    if (maybe_unknown && std::any_of(dims.begin(), dims.end(), isNegative)) return std::nullopt;
    return dims;
  }

  ListedArray withData(std::vector<int64_t> dims, const std::string& what) {
    require(8, "the device of " + what);
    offset_ += 8;  // where the array was when it was saved
    const std::size_t start = offset_;
    const auto type = number<int32_t>("the dtype of " + what);
    if (type < 0 || type > kMostTypes) {
      fail(start, what + " has dtype " + std::to_string(type) + "; MXNet's are 0 to 12");
    }
    for (const int64_t size : dims) {
      if (size >= 0) continue;
      fail(offset_, what + " has a negative dimension in its shape " + tupleOf(dims));
    }
    const std::size_t element = elementSize(type);
    const auto bytes = arrayBytes(element, dims.data(), static_cast<int>(dims.size()));
    if (!bytes) fail(offset_, what + " has the shape " + tupleOf(dims) + ", beyond 64 bits");
    require(*bytes, what + " of shape " + tupleOf(dims));
    ListedArray made;
    made.type = static_cast<MXDType>(type);
    made.dims = std::move(dims);
    made.data = bytes_.substr(offset_, *bytes);
    offset_ += *bytes;
    return made;
  }

  std::string name(std::size_t index) {
    const std::string what = "name " + std::to_string(index);
    const std::size_t length = counted("bytes", 1, what);
    require(length, what);
    std::string made(bytes_.substr(offset_, length));
    const char* const stop = made.data() + made.size();
    for (const char* cursor = made.data(); cursor < stop;) {
      const std::size_t bytes = mxnet::ext::host::utf8Length(cursor, stop);
      if (bytes == 0) {
        fail(offset_ + static_cast<std::size_t>(cursor - made.data()), what + " is not UTF-8");
      }
      cursor += bytes;
    }
    const std::size_t end = made.find('\0');
    if (end != std::string::npos) {
      fail(offset_ + end, what + " has a NUL character in it, at which MXNet would truncate it");
    }
    offset_ += length;
    return made;
  }

  std::string_view bytes_;
  const std::string& file_;
  std::size_t offset_ = 0;
};

}  // namespace

std::vector<ListedArray> readList(std::string_view bytes, const std::string& file) {
  return ListReader(bytes, file).read();
}

std::string listHead(std::size_t count) {
  std::string made;
  append(kListMagic, &made);
  append(uint64_t{0}, &made);
  append(static_cast<uint64_t>(count), &made);
  return made;
}

std::string arrayHead(MXDType type, const std::vector<int64_t>& dims, bool numpy_form) {
  std::string made;
  append(numpy_form ? kNumpyMagic : kCurrentMagic, &made);
  append(int32_t{0}, &made);  // dense
  append(static_cast<int32_t>(dims.size()), &made);
  for (const int64_t size : dims) append(size, &made);
  append(int32_t{1}, &made);  // the processor, number 0
  append(int32_t{0}, &made);
  append(static_cast<int32_t>(type), &made);
  return made;
}

std::string listNames(const std::vector<std::string>& names) {
  std::string made;
  append(static_cast<uint64_t>(names.size()), &made);
  for (const std::string& name : names) {
    append(static_cast<uint64_t>(name.size()), &made);
    made += name;
  }
  return made;
}

}  // namespace passlib::symbols
