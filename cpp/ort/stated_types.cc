#include "ort/stated_types.h"

#include <map>
#include <set>
#include <utility>

#include "library/operators/elements.h"
#include "ort/calls.h"
#include "ort/types.h"

namespace passlib {
namespace {

using mxnet::ext::JsonVal;

std::string joined(const std::vector<SizeText>& shape) {
  std::string text;
  for (const SizeText& size : shape) text += (text.empty() ? "" : ", ") + size.text();
  return "(" + text + ")";
}

}  // namespace

/// Reads the attribute. Each error names the part that is wrong.
class StatedTypes::Reader {
 public:
  explicit Reader(const std::string& text) {
    try {
      object_ = JsonVal::parse(text);
    } catch (const std::exception& error) {
      throw OrtError(mxnet::ext::host::textOf(error));
    }
    if (object_.type != mxnet::ext::MAP) throw OrtError("it is no JSON object");
  }

  std::vector<Array> arrays(const char* key, bool are_inputs) {
    std::vector<Array> made;
    for (const JsonVal& item : list(object_, key)) made.push_back(array(item, key, are_inputs));
    return made;
  }

  std::vector<int> positions(const char* key, int count) const {
    std::vector<int> made;
    for (const JsonVal& item : list(object_, key)) {
      const int64_t least = made.empty() ? 0 : made.back() + int64_t{1};
      const int64_t number = integer(item, key);
      if (number < least || number >= count) {
        throw OrtError(std::string("'") + key + "' has the position " + std::to_string(number) +
                       "; positions ascend, and are below " + std::to_string(count));
      }
      made.push_back(static_cast<int>(number));
    }
    return made;
  }

 private:
  static const JsonVal& member(const JsonVal& map, const char* key) {
    const auto found = map.map.find(JsonVal(key));
    if (found == map.map.end()) throw OrtError(std::string("it has no '") + key + "'");
    return found->second;
  }

  static const std::vector<JsonVal>& list(const JsonVal& map, const char* key) {
    const JsonVal& value = member(map, key);
    if (value.type != mxnet::ext::LIST) throw OrtError(std::string("'") + key + "' is no list");
    return value.list;
  }

  static int64_t integer(const JsonVal& value, const char* key) {
    int64_t number = 0;
    if (value.type != mxnet::ext::NUM || !value.toInteger(&number)) {
      throw OrtError(std::string("'") + key + "' has an item that is no integer");
    }
    return number;
  }

  Array array(const JsonVal& item, const char* key, bool is_input) {
    if (item.type != mxnet::ext::MAP) {
      throw OrtError(std::string("'") + key + "' has an item that is no JSON object");
    }
    const int64_t element = integer(member(item, "element"), "element");
    Array made{dtypeOfElement(element), {}};
    if (made.dtype == -1) {
      throw OrtError("the ABI has no element type " + std::to_string(element) + " of ONNX");
    }
    for (const JsonVal& size : list(item, "shape")) {
      const bool is_text = size.type == mxnet::ext::STR;
      made.shape.emplace_back(is_text ? size.str : std::to_string(integer(size, "shape")));
      check(made.shape.back(), is_input && is_text);
    }
    return made;
  }

  /// Checks that inputs have names, and outputs those of the inputs.
  void check(const SizeText& size, bool is_name) {
    std::vector<std::string> names;
    size.addNames(&names);
    if (is_name && size.name() == nullptr) {
      throw OrtError("the size '" + size.text() + "' of an input is no name");
    }
    for (const std::string& name : names) {
      if (is_name) {
        names_.insert(name);
      } else if (names_.count(name) == 0) {
        throw OrtError("the size '" + size.text() + "' has the name '" + name +
                       "', which no input has");
      }
    }
  }

  JsonVal object_;
  std::set<std::string> names_;
};

StatedTypes::StatedTypes(const std::string& text) {
  Reader reader(text);
  inputs_ = reader.arrays("inputs", true);
  outputs_ = reader.arrays("outputs", false);
  if (outputs_.empty()) throw OrtError("it has no outputs");
  written_ = reader.positions("written", inputCount());
}

std::vector<OutputArray> StatedTypes::outputs(const std::vector<std::vector<int64_t>>& shapes,
                                              const std::vector<int>& types) const {
  std::map<std::string, int64_t> sizes;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const std::string which = " as its input " + std::to_string(i);
    const auto& [dtype, stated] = inputs_[i];
    if (types[i] != dtype) {
      throw OrtError("takes the type code " + std::to_string(dtype) + which + ", which has " +
                     std::to_string(types[i]));
    }
    bool fits = shapes[i].size() == stated.size();
    std::string known;
    for (std::size_t axis = 0; fits && axis < stated.size(); ++axis) {
      const int64_t given = shapes[i][axis];
      const std::string* name = stated[axis].name();
      if (name == nullptr) {
        fits = stated[axis].evaluate({}) == given;
        continue;
      }
      const int64_t first = sizes.emplace(*name, given).first->second;
      known += (known.empty() ? " with " : ", ") + *name + " = " + std::to_string(first);
      fits = first == given;
    }
    if (!fits) {
      throw OrtError("takes the shape " + joined(stated) + which + known + ", which has " +
                     spelled(shapes[i]) + "; export the model for these shapes");
    }
  }
  std::vector<OutputArray> made(outputs_.size());
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    made[i].dtype = outputs_[i].dtype;
    for (const SizeText& size : outputs_[i].shape) {
      const int64_t extent = size.evaluate(sizes);
      if (extent < 0) {
        throw OrtError("computes " + std::to_string(extent) + " as the size '" + size.text() +
                       "' of its output " + std::to_string(i));
      }
      made[i].shape.push_back(extent);
    }
  }
  return made;
}

}  // namespace passlib
