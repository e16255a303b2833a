#include "bindings/arrays.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "errors.h"

namespace passlib {

namespace py = pybind11;

namespace {

/// Positions of the pairs whose arrays differ in any bit. Both of a pair must be C-contiguous.
std::vector<std::size_t> differingArrays(const py::iterable& pairs) {
  std::vector<std::size_t> positions;
  std::size_t position = 0;
  for (const py::handle& item : pairs) {
    const auto pair = item.cast<py::tuple>();
    const auto left = pair[0].cast<py::array>();
    const auto right = pair[1].cast<py::array>();
    const auto bytes = static_cast<std::size_t>(left.nbytes());
    const bool same_place = left.data() == right.data() || bytes == 0;
    if (left.nbytes() != right.nbytes() ||
        (!same_place && std::memcmp(left.data(), right.data(), bytes) != 0)) {
      positions.push_back(position);
    }
    ++position;
  }
  return positions;
}

}  // namespace

ParamBlock makeBlock(const py::list& params) {
  ParamBlock block;
  for (const py::handle& item : params) {
    const auto fields = item.cast<py::tuple>();
    const auto array = fields[1].cast<py::array>();
    const auto name = fields[0].cast<std::string>();
    if (name.find('\0') != std::string::npos) {
      throw GraphError("the parameter named '" + name.substr(0, name.find('\0')) +
                       "' and more after a NUL byte cannot be passed to a library, whose texts end "
                       "there: rename it");
    }
    std::vector<int64_t> shape(array.shape(), array.shape() + array.ndim());
    block.add(name, const_cast<void*>(array.data()), std::move(shape), fields[2].cast<int>());
  }
  return block;
}

py::array ownedBytes(OwnedMemory memory, const void* data, std::size_t size) {
  const py::capsule owner(memory.get(), [](void* pointer) { FreeMemory()(pointer); });
  memory.release();
  return py::array_t<uint8_t>({static_cast<py::ssize_t>(size)}, {1},
                              static_cast<const uint8_t*>(data), owner);
}

void bindArrays(py::module_* m) { m->def("differing_arrays", &differingArrays, py::arg("pairs")); }

}  // namespace passlib
