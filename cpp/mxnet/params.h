// MXNet's lists of arrays, as .params files hold them.
#ifndef PASSLIB_MXNET_PARAMS_H_
#define PASSLIB_MXNET_PARAMS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "header.h"

namespace passlib::symbols {

/// A dense array of a list.
struct ListedArray {
  std::string name;
  mxnet::ext::MXDType type = mxnet::ext::kFloat32;
  std::vector<int64_t> dims;
  std::string_view data;  ///< in the file; maybe not aligned
};

/// Reads a file of named arrays; nothing is allocated for a size that the file cannot hold. Bytes
/// after the names are ignored, as MXNet does. `file`: its path, for messages. Throws FormatError,
/// and UnsupportedError for other formats of weights and for sparse arrays.
std::vector<ListedArray> readList(std::string_view bytes, const std::string& file);

/// The bytes before the first array, and those before each array. Arrays without dimensions need
/// the form of NumPy's shapes, in all arrays of the list.
std::string listHead(std::size_t count);
std::string arrayHead(mxnet::ext::MXDType type, const std::vector<int64_t>& dims, bool numpy_form);
/// The bytes after the last array.
std::string listNames(const std::vector<std::string>& names);

}  // namespace passlib::symbols

#endif  // PASSLIB_MXNET_PARAMS_H_
