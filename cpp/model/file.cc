#include "model/file.h"

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "errors.h"
#include "facts/fact.h"
#include "onnx/external/places.h"
#include "onnx/parts/attribute.h"
#include "onnx/parts/tensor.h"
#include "onnx/wire/numbers.h"

namespace passlib::model {

namespace {

using onnx::Constant;
using onnx::Kind;

template <typename Number>
Array arrayOf(int32_t type, std::vector<int64_t> dims, const Number* numbers, std::size_t count) {
  const std::shared_ptr<char[]> memory(new char[count * sizeof(Number) + 1]);
  if (count > 0) std::memcpy(memory.get(), numbers, count * sizeof(Number));
  return {type, std::move(dims), onnx::Bytes(memory.get(), count * sizeof(Number)), memory};
}

/// `owner` keeps the memory of the file. Constants are checked already.
Array arrayOf(const Constant& constant, const std::shared_ptr<const void>& owner) {
  if (constant.kind == Kind::kTensor) {
    onnx::Tensor tensor = onnx::readTensor(constant.message);
    if (tensor.has_raw) return {tensor.type, std::move(tensor.dims), tensor.raw, owner};
    const onnx::Elements elements = onnx::checkElements(tensor, [&] { return constant.place(); });
    const std::size_t size = elements.count * onnx::elementType(tensor.type)->size;
    const std::shared_ptr<char[]> memory(new char[size + 1]);
    onnx::copyElements(tensor, elements, memory.get());
    return {tensor.type, std::move(tensor.dims), onnx::Bytes(memory.get(), size), memory};
  }
  onnx::Arena arena;
  const onnx::Attribute value = onnx::readAttribute(constant.message, &arena);
  if (constant.kind == Kind::kInt) return arrayOf(facts::kInt64, {}, &value.whole, 1);
  if (constant.kind == Kind::kFloat) return arrayOf(facts::kFloat, {}, &value.real, 1);
  if (constant.kind == Kind::kInts) {
    const auto numbers = onnx::numbersOf<int64_t>(value);
    return arrayOf(facts::kInt64, {static_cast<int64_t>(numbers.size())}, numbers.data(),
                   numbers.size());
  }
  const auto numbers = onnx::numbersOf<float>(value);
  return arrayOf(facts::kFloat, {static_cast<int64_t>(numbers.size())}, numbers.data(),
                 numbers.size());
}

}  // namespace

std::shared_ptr<File> File::open(const std::string& path) {
  const std::shared_ptr<File> made(new File);
  made->folder_ = std::make_shared<Folder>(folderOf(path));
  made->mapping_ = mapFile(path);
  if (made->mapping_ != nullptr) {
    made->bytes_ = onnx::Bytes(made->mapping_->data(), made->mapping_->size());
  }
  try {
    return finish(made, nullptr);
  } catch (const FormatError& error) {
    throw FormatError(path + ": " + error.what(), error.offset);
  }
}

std::shared_ptr<File> File::of(std::string bytes) {
  const std::shared_ptr<File> made(new File);
  made->memory_ = std::make_shared<const std::string>(std::move(bytes));
  made->bytes_ = *made->memory_;
  return finish(made, nullptr);
}

std::shared_ptr<File> File::of(std::string bytes, const File& like) {
  const std::shared_ptr<File> made(new File);
  made->memory_ = std::make_shared<const std::string>(std::move(bytes));
  made->bytes_ = *made->memory_;
  made->folder_ = like.folder_;
  return finish(made, &like);
}

std::shared_ptr<File> File::finish(std::shared_ptr<File> file, const File* like) {
  file->read_ = onnx::readModel(file->bytes_);
  if (file->read_.has_external && file->folder_ == nullptr) {
    throw UnsupportedError(
        "this ONNX model has data in other files, and bytes have no folder to look in; load it "
        "from its file");
  }
  for (const auto& [domain, version] : file->read_.imports) {
    file->opsets_[std::string(domain)] = version;
  }
  file->graph_ = std::make_shared<GraphSource>(std::move(file->read_.graph));
  std::shared_ptr<const void> owner = file->mapping_;
  if (owner == nullptr) owner = file->memory_;
  for (const Constant& constant : file->read_.constants) {
    if (constant.external) {
      std::optional<Array> array = file->folder_->array(constant);
      if (!array) continue;
      if (!constant.main) {
        file->read_.elsewhere[constant.message.data()] = {array->data, array->owner};
        continue;
      }
      if (constant.what == Constant::What::kInitializer) {
        const onnx::DataPlace place = onnx::placeOf(constant.message, constant.place());
        ++file->users_[onnx::plainPath(place.location)];
      }
      file->arrays_[std::string(constant.name)] = *std::move(array);
    } else if (constant.main) {
      file->arrays_[std::string(constant.name)] = arrayOf(constant, owner);
    }
  }
  if (like != nullptr) file->users_ = like->users_;
  file->read_.constants = {};
  return file;
}

bool File::hasFunctions() const {
  bool found = false;
  onnx::forEachBody(bytes_, onnx::numbers::kFunctions, [&found](onnx::Bytes) { found = true; });
  return found;
}

std::shared_ptr<const onnx::Originals> File::originals() const {
  check();
  std::call_once(once_, [this] {
    originals_ = std::make_shared<const onnx::Originals>(bytes_, read_, graph_->get());
  });
  return originals_;
}

}  // namespace passlib::model
