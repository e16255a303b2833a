#include "model/data_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "errors.h"
#include "model/folder.h"
#include "onnx/parts/tensor.h"

namespace passlib::model {

namespace {

using onnx::Bytes;
using onnx::DataPlace;
using onnx::External;
using onnx::Payload;
using onnx::WrittenInitializer;

/// Alignment of larger arrays in data files, so that they can be mapped.
constexpr std::size_t kAlignment = 4096;

/// Arrays of fewer bytes always stay in the model.
constexpr std::size_t kSmall = 1024;

/// The most bytes in the name of a file.
constexpr std::size_t kLongestName = 255;

bool exists(const std::string& path) {
  struct stat state{};
  return ::stat(path.c_str(), &state) == 0;
}

bool isTaken(const std::string& path) {
  struct stat state{};
  return ::lstat(path.c_str(), &state) == 0;
}

bool isAt(const std::shared_ptr<const FileMapping>& mapping, const std::string& path) {
  if (mapping != nullptr) return mapping->isAt(path);
  struct stat state{};
  return ::stat(path.c_str(), &state) == 0 && state.st_size == 0;
}

class Placing {
 public:
  Placing(const Model& model, const onnx::ModelWriter& writer, Bytes message,
          const std::vector<Payload>& given, const std::string& path)
      : model_(model),
        initializers_(writer.graph().initializers),
        message_(message),
        given_(given),
        folder_(folderOf(path)),
        name_(path.substr(path.rfind('/') + 1)) {
    onnx::forEachNumberedTensor(
        message, [this](const onnx::Path& tensor, std::optional<std::size_t> number) {
          addUser(tensor.back().body, number);
        });
  }

  Placed place(std::size_t most) {
    for (const std::string& location : own_locations_) placeFile(location);
    for (const std::string& location : other_locations_) {
      if (own_.count(location) == 0) placeFile(location);
    }
    placeRest(most);
    return std::move(made_);
  }

 private:
  void addUser(Bytes tensor, std::optional<std::size_t> number) {
    const onnx::TensorHead head = onnx::readTensorHead(tensor);
    if (!head.external) return;
    const DataPlace place = onnx::placeOf(tensor, std::string(head.name));
    const std::string location = onnx::plainPath(place.location);
    if (number && initializers_[*number].external != External::kNo) {
      std::vector<std::size_t>& numbers = own_[location];
      if (numbers.empty()) own_locations_.push_back(location);
      numbers.push_back(*number);
      offsets_[*number] = place.offset;
    } else if (others_[location]++ == 0) {
      other_locations_.push_back(location);
    }
  }

  void placeFile(const std::string& location) {
    const std::vector<std::size_t> numbers = own_[location];
    const bool shared = others_.count(location) != 0;
    bool found = true;
    std::shared_ptr<const FileMapping> source;
    try {
      source = model_.file->folder()->file(location, name_);
    } catch (const FormatError&) {  // it is gone, and all that is needed of it is mapped
      if (shared) throw;
      found = false;
    }
    std::vector<std::size_t> fresh;
    for (const std::size_t number : numbers) {
      if (initializers_[number].external == External::kChanged) fresh.push_back(number);
    }
    const auto users = model_.file->users().find(location);
    const std::size_t before = users == model_.file->users().end() ? 0 : users->second;
    const bool complete = fresh.empty() && numbers.size() == before;
    std::string name = location;
    if (exists(folder_ + "/" + location)) {
      if (complete && found && isAt(source, folder_ + "/" + location)) {
        made_.kept.push_back({folder_ + "/" + location, std::move(source)});
        return;
      }
      name = freeName();  // another model may lead to the one that is there
    }
    DataFile file{folder_ + "/" + name, {}};
    if (found && (shared || complete)) {
      // Others may use any part of the file: keep all of it, and append new data.
      if (source != nullptr) file.content.append(Bytes(source->data(), source->size()));
      for (const std::size_t number : fresh) append(number, name, &file.content);
      if (name != location) made_.relocation.files[location] = name;
    } else {
      writeAll(numbers, name, &file.content);
    }
    made_.files.push_back(std::move(file));
  }

  /// Writes arrays one after the other; those that shared their data still do.
  void writeAll(const std::vector<std::size_t>& numbers, const std::string& name,
                onnx::Pieces* content) {
    std::map<std::pair<uint64_t, std::size_t>, std::size_t> shared;
    for (const std::size_t number : numbers) {
      const bool changed = initializers_[number].external == External::kChanged;
      if (!changed) {
        const auto [known, fresh] =
            shared.try_emplace({offsets_[number], given_[number].size()}, number);
        if (!fresh) {
          made_.relocation.places[number] = made_.relocation.places.at(known->second);
          continue;
        }
      }
      append(number, name, content);
    }
  }

  void append(std::size_t number, const std::string& name, onnx::Pieces* content) {
    const Payload& payload = given_[number];
    std::size_t end = content->size();
    if (payload.size() >= kAlignment && end % kAlignment != 0) {
      content->text()->append(kAlignment - end % kAlignment, '\0');
      end = content->size();
    }
    payload.appendTo(content);
    made_.relocation.places[number] = DataPlace{name, end, payload.size()};
  }

  /// Gives the model the elements that are in no file.
  void placeRest(std::size_t most) {
    std::size_t size = message_.size();
    std::map<std::size_t, Payload>& payloads = made_.relocation.payloads;
    for (std::size_t i = 0; i < initializers_.size(); ++i) {
      if (!initializers_[i].aside || initializers_[i].external != External::kNo) continue;
      payloads[i] = given_[i];
      size += given_[i].size();
    }
    if (size <= most) return;
    const std::string name = freeName();
    DataFile file{folder_ + "/" + name, {}};
    for (auto each = payloads.begin(); each != payloads.end();) {
      if (each->second.size() < kSmall) {
        ++each;
        continue;
      }
      append(each->first, name, &file.content);
      each = payloads.erase(each);
    }
    made_.files.push_back(std::move(file));
  }

  /// A name for a data file that no other model uses: x.onnx.data, x.onnx.1.data and so on; of one
  /// that is too long the beginning is left out.
  std::string freeName() const {
    for (std::size_t number = 0;; ++number) {
      const std::string end = (number > 0 ? "." + std::to_string(number) : "") + ".data";
      std::string stem = name_;
      while (stem.size() + end.size() > kLongestName) {
        do {
          stem.erase(0, 1);
        } while (!stem.empty() && (static_cast<unsigned char>(stem[0]) & 0xC0U) == 0x80);
      }
      const std::string name = stem + end;
      const std::string path = folder_ + "/" + name;
      const bool is_made = std::any_of(made_.files.begin(), made_.files.end(),
                                       [&path](const DataFile& file) { return file.path == path; });
      if (!is_made && !isTaken(path)) return name;
    }
  }

  const Model& model_;
  const std::vector<WrittenInitializer>& initializers_;
  Bytes message_;
  const std::vector<Payload>& given_;
  std::string folder_;
  std::string name_;
  std::map<std::string, std::vector<std::size_t>> own_;  ///< initializers by location
  std::vector<std::string> own_locations_;
  std::map<std::string, std::size_t> others_;  ///< the number of other tensors by location
  std::vector<std::string> other_locations_;
  std::map<std::size_t, uint64_t> offsets_;
  Placed made_;
};

}  // namespace

Placed placeData(const Model& model, const onnx::ModelWriter& writer, Bytes message,
                 const std::vector<Payload>& given, const std::string& path, std::size_t most) {
  return Placing(model, writer, message, given, path).place(most);
}

}  // namespace passlib::model
