#include "model/data_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "errors.h"
#include "graph/check.h"
#include "model/folder.h"
#include "onnx/external/places.h"
#include "onnx/external/relocation.h"
#include "onnx/parts/tensor.h"
#include "onnx/text/strings.h"
#include "onnx/wire/file_output.h"

namespace passlib::model {

namespace {

using onnx::Bytes;
using onnx::DataPlace;
using onnx::External;
using onnx::Payload;

/// Alignment of larger arrays in data files, so that they can be mapped.
constexpr std::size_t kAlignment = 4096;

/// Arrays of fewer bytes always stay in the model, unless a placement says otherwise.
constexpr std::size_t kSmallWeight = 1024;

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

bool isAt(const FileMapping* mapping, const std::string& path) {
  if (mapping != nullptr) return mapping->isAt(path);
  struct stat state{};
  return ::stat(path.c_str(), &state) == 0 && state.st_size == 0;
}

/// A number with a comma before every three digits.
std::string grouped(std::size_t number) {
  std::string text = std::to_string(number);
  for (std::size_t left = text.size(); left > 3;) text.insert(left -= 3, 1, ',');
  return text;
}

/// A tensor of the message.
struct Item {
  const char* start;  ///< of its field
  Bytes message;
  std::optional<std::size_t> number;  ///< of a weight that is not in the message
  bool is_initializer;
  bool is_external;
};

/// Elements for a tensor, which are not in the message.
struct Loose {
  const char* start;
  Payload elements;
  bool is_main;
  bool was_in_file;
};

class Placing {
 public:
  explicit Placing(const Unplaced& model)
      : model_(model),
        folder_(folderOf(model.path)),
        name_(model.path.substr(model.path.rfind('/') + 1)) {
    onnx::forEachNumberedTensor(
        model.message, [this](const onnx::Path& path, std::optional<std::size_t> number) {
          const Bytes message = path.back().body;
          const bool aside = number && model_.weights.count(*number) != 0;
          const bool is_external = onnx::readTensorHead(message).external;
          if (!aside) number.reset();
          items_.push_back(
              {path.back().start, message, number, onnx::isInitializer(path), is_external});
        });
    // In a data file the weights of the main graph are the first.
    std::stable_partition(items_.begin(), items_.end(),
                          [](const Item& item) { return item.number.has_value(); });
  }

  Placed place() {
    if (model_.placement) {
      placeAsAsked(*model_.placement);
    } else if (model_.held) {
      placeHeld();
    } else {
      placeAsBefore();
    }
    made_.moved = !relocation_.places.empty() || !relocation_.files.empty();
    made_.content = onnx::relocate(model_.message, relocation_);
    const std::size_t size = made_.content.size();
    if (size > model_.most) {
      const char* const way = !model_.placement ? " without its larger weights"
                              : model_.placement->external
                                  ? "; save it with a smaller size_threshold"
                                  : "; save it with external_data=True";
      throw UnsupportedError(onnx::printable(model_.path) + ": the model would have " +
                             grouped(size) + " bytes, and the limit is " + grouped(model_.most) +
                             way);
    }
    return std::move(made_);
  }

 private:
  const WeightAside& weight(const Item& item) const { return model_.weights.at(*item.number); }

  static std::string title(const Item& item) {
    return onnx::shown(onnx::readTensorHead(item.message).name);
  }

  static DataPlace placeOf(const Item& item) { return onnx::placeOf(item.message, title(item)); }

  // As before.

  void placeAsBefore() {
    std::map<std::string, std::vector<const Item*>> own;
    std::map<std::string, bool> is_shared;
    std::vector<std::string> locations;
    for (const Item& item : items_) {
      if (!item.is_external) continue;
      const std::string location = onnx::plainPath(placeOf(item).location);
      const bool is_own = item.number && weight(item).external != External::kNo;
      const auto [known, fresh] = is_shared.try_emplace(location, false);
      if (fresh) locations.push_back(location);
      if (is_own) {
        own[location].push_back(&item);
      } else if (!std::exchange(known->second, true)) {
        made_.elsewhere.push_back(location);
      }
    }
    for (const std::string& location : locations) {
      placeFile(location, own[location], is_shared[location]);
    }
    std::vector<Loose> rest;
    for (const Item& item : items_) {
      if (!item.number || weight(item).external != External::kNo) continue;
      rest.push_back({item.start, weight(item).elements, true, false});
    }
    placeLoose(rest);
  }

  void placeFile(const std::string& location, const std::vector<const Item*>& own, bool is_shared) {
    const auto source = model_.file(location, is_shared);
    std::vector<const Item*> fresh;
    for (const Item* item : own) {
      if (weight(*item).external == External::kChanged) fresh.push_back(item);
    }
    const auto users = model_.users.find(location);
    const std::size_t before = users == model_.users.end() ? 0 : users->second;
    const bool complete = fresh.empty() && own.size() == before;
    std::string name = location;
    if (exists(folder_ + "/" + location)) {
      if (complete && source && isAt(source->get(), folder_ + "/" + location)) {
        made_.kept.push_back({folder_ + "/" + location, *source});
        return;
      }
      name = freeName("");  // another model may lead to the one that is there
    }
    DataFile file{folder_ + "/" + name, {}};
    if (source && (is_shared || complete)) {
      // Others may use any part of the file: keep all of it, and append new data.
      if (*source != nullptr) file.content.append(Bytes((*source)->data(), (*source)->size()));
      for (const Item* item : fresh) append(*item, name, &file.content);
      if (name != location) relocation_.files[location] = name;
    } else {
      writeAll(own, name, &file.content);
    }
    made_.files.push_back(std::move(file));
  }

  /// Writes arrays one after the other; those that shared their data still do.
  void writeAll(const std::vector<const Item*>& own, const std::string& name,
                onnx::Pieces* content) {
    std::map<std::pair<uint64_t, std::size_t>, const Item*> shared;
    for (const Item* item : own) {
      if (weight(*item).external != External::kChanged) {
        const std::size_t size = weight(*item).elements.size();
        const auto [known, fresh] = shared.try_emplace({placeOf(*item).offset, size}, item);
        if (!fresh) {
          relocation_.places[item->start] = relocation_.places.at(known->second->start);
          continue;
        }
      }
      append(*item, name, content);
    }
  }

  void append(const Item& item, const std::string& name, onnx::Pieces* content) {
    relocation_.places[item.start] = append(weight(item).elements, name, content);
  }

  static DataPlace append(const Payload& elements, const std::string& name, onnx::Pieces* content) {
    std::size_t end = content->size();
    if (elements.size() >= kAlignment && end % kAlignment != 0) {
      content->text()->append(kAlignment - end % kAlignment, '\0');
      end = content->size();
    }
    elements.appendTo(content);
    return DataPlace{name, end, elements.size()};
  }

  // Data that is in memory.

  void placeHeld() {
    std::vector<Loose> rest;
    for (const Item& item : items_) {
      bool was_in_file = false;
      Payload elements;
      if (item.is_external) {
        const std::string location = placeOf(item).location;
        was_in_file = location.rfind(kHeldOfFile, 0) == 0;
        if (!item.number) elements.data = model_.held(location);
      }
      if (item.number) elements = weight(item).elements;
      if (!item.number && !item.is_external) continue;
      rest.push_back({item.start, elements, item.number.has_value(), was_in_file});
    }
    placeLoose(rest);
  }

  /// Gives the model what was in no file; the rest goes to a new one, with larger ones if the model
  /// had too many bytes.
  void placeLoose(const std::vector<Loose>& all) {
    std::size_t size = model_.message.size();
    for (const Loose& each : all) {
      if (!each.was_in_file) size += each.elements.size();
    }
    const auto moves = [&](const Loose& each) {
      return each.was_in_file ||
             (size > model_.most && (!each.is_main || each.elements.size() >= kSmallWeight));
    };
    NewData data(this);
    for (const Loose& each : all) {
      if (moves(each)) {
        data.add(each.start, each.elements);
      } else {
        relocation_.payloads[each.start] = each.elements;
      }
    }
    data.finish();
  }

  /// A new data file; weights that shared their data still do.
  class NewData {
   public:
    /// `name`: empty for a free one.
    explicit NewData(Placing* placing, std::string name = "")
        : placing_(placing), name_(std::move(name)) {}

    void add(const char* start, const Payload& elements) {
      if (name_.empty()) name_ = placing_->freeName("");
      is_used_ = true;
      const std::pair<const char*, std::size_t> key(elements.data.data(), elements.size());
      const auto known = elements.computed == nullptr ? places_.find(key) : places_.end();
      if (known != places_.end()) {
        placing_->relocation_.places[start] = known->second;
        return;
      }
      const DataPlace place = append(elements, name_, &content_);
      placing_->relocation_.places[start] = place;
      if (elements.computed == nullptr) places_[key] = place;
    }

    void finish() {
      if (!is_used_) return;
      placing_->made_.files.push_back({placing_->folder_ + "/" + name_, std::move(content_)});
    }

   private:
    Placing* placing_;
    std::string name_;
    bool is_used_ = false;
    onnx::Pieces content_;
    std::map<std::pair<const char*, std::size_t>, DataPlace> places_;
  };

  // As asked.

  void placeAsAsked(const Placement& placement) {
    std::string name = stated(placement.location);
    if (!name.empty() && exists(folder_ + "/" + name)) {
      // The file stays until the new model is in place: the old one needs it.
      name = freeName(name.substr(0, name.rfind('/') + 1));
    }
    NewData data(this, name);
    for (const Item& item : items_) {
      if (item.is_external && !item.number && !model_.held) {
        made_.elsewhere.push_back(onnx::plainPath(placeOf(item).location));
      }
      const std::optional<Payload> elements = elementsOf(item);
      if (!elements) continue;
      if (placement.external && elements->size() >= placement.threshold) {
        data.add(item.start, *elements);
      } else if (item.is_external || item.number) {
        relocation_.payloads[item.start] = *elements;
      }
    }
    data.finish();
  }

  /// The elements of a tensor that may move.
  std::optional<Payload> elementsOf(const Item& item) {
    if (item.number) return weight(item).elements;
    if (!item.is_initializer && !item.is_external) return std::nullopt;
    const onnx::Tensor tensor = onnx::readTensor(item.message);
    if (tensor.segment) return std::nullopt;
    const std::string what = onnx::shown(tensor.name);
    if (item.is_external) {
      const DataPlace place = placeOf(item);
      if (model_.held) return Payload{model_.held(place.location)};
      const auto file = model_.file(place.location, true);
      return Payload{dataIn(file->get(), tensor, place, what)};
    }
    if (tensor.has_raw) return Payload{tensor.raw};
    const onnx::Elements elements = onnx::checkElements(tensor, [&what] { return what; });
    if (elements.type == nullptr) return std::nullopt;
    made_.elements.emplace_back(elements.count * elements.type->size, '\0');
    onnx::copyElements(tensor, elements, made_.elements.back().data());
    return Payload{made_.elements.back()};
  }

  /// A name for a data file that no other model uses: x.onnx.data, x.onnx.1.data and so on; of one
  /// that is too long the beginning is left out. `folder`: "" or with a slash at its end.
  std::string freeName(const std::string& folder) const {
    for (std::size_t number = 0;; ++number) {
      const std::string end = (number > 0 ? "." + std::to_string(number) : "") + ".data";
      std::string stem = name_;
      while (stem.size() + end.size() > kLongestName) {
        do {
          stem.erase(0, 1);
        } while (!stem.empty() && (static_cast<unsigned char>(stem[0]) & 0xC0U) == 0x80);
      }
      std::string name = folder + stem + end;
      const std::string path = folder_ + "/" + name;
      const bool is_made = std::any_of(made_.files.begin(), made_.files.end(),
                                       [&path](const DataFile& file) { return file.path == path; });
      if (!is_made && !isTaken(path)) return stated(std::move(name));
    }
  }

  /// Returns a name that the model is to state.
  std::string stated(std::string name) const {
    if (isUtf8(name)) return name;
    throw UnsupportedError(onnx::printable(model_.path) +
                           ": the name of a data file must be UTF-8, "
                           "and " +
                           onnx::shown(name) + " is not; choose another name");
  }

  const Unplaced& model_;
  std::string folder_;
  std::string name_;
  std::vector<Item> items_;
  onnx::Relocation relocation_;
  Placed made_;
};

}  // namespace

Placed placeData(const Unplaced& model) { return Placing(model).place(); }

void writeSharing(const onnx::Pieces& pieces, int file) {
  onnx::writePieces(pieces, file, [](Bytes bytes) {
    const FilePlace place = placeInFile(bytes.data(), bytes.size());
    return onnx::FileSpan{place.file, place.offset};
  });
}

}  // namespace passlib::model
