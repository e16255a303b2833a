#include "model/attributes.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "errors.h"
#include "graph/attributes.h"
#include "header.h"
#include "onnx/parts/attribute.h"
#include "onnx/parts/tensor.h"
#include "onnx/text/strings.h"
#include "onnx/text/type_text.h"
#include "onnx/wire/numbers.h"
#include "onnx/wire/output.h"
#include "rules/known.h"

namespace passlib::model {

namespace {

using mxnet::ext::JsonVal;
using mxnet::ext::host::memberOf;
using onnx::Bytes;
using onnx::Kind;
using onnx::shown;
namespace numbers = onnx::numbers;

/// Whether a text is that of a whole number, of any size.
bool isInteger(Bytes text) {
  const std::size_t sign = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  const Bytes digits = text.substr(sign);
  return !digits.empty() && digits.find_first_not_of("0123456789") == Bytes::npos;
}

bool readInteger(Bytes text, int64_t* number) {
  text = trimmed(text);
  if (!isInteger(text)) return false;
  errno = 0;
  *number = std::strtoll(std::string(text).c_str(), nullptr, 10);
  return errno == 0;
}

bool readWhole(Bytes text, int64_t* number) {
  if (text == "True" || text == "true") return *number = 1, true;
  if (text == "False" || text == "false") return *number = 0, true;
  return readInteger(text, number);
}

bool readReal(Bytes text, float* number) {
  double real = 0;
  if (!mxnet::ext::host::readReal(std::string(trimmed(text)), &real)) return false;
  *number = static_cast<float>(real);
  return true;
}

bool isList(Bytes text) {
  return text.size() >= 2 && ((text.front() == '[' && text.back() == ']') ||
                              (text.front() == '(' && text.back() == ')'));
}

/// Splits `[1, 2]`, `(1, 2)` or `1, 2`; a bracket without the other one stays in its item.
std::vector<Bytes> itemsOf(Bytes text) {
  text = trimmed(text);
  if (isList(text)) text = text.substr(1, text.size() - 2);
  std::vector<Bytes> items;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const Bytes item = trimmed(text.substr(0, comma));
    if (!item.empty()) items.push_back(item);
    text = comma == Bytes::npos ? Bytes() : text.substr(comma + 1);
  }
  return items;
}

template <typename Number, typename Read>
bool readAll(Bytes text, std::vector<Number>* list, Read read) {
  for (const Bytes item : itemsOf(text)) {
    Number number{};
    if (!read(item, &number)) return false;
    list->push_back(number);
  }
  return true;
}

bool readStrings(Bytes text, std::vector<std::string>* list) {
  try {
    const JsonVal value = JsonVal::parse(std::string(text));
    if (value.type != mxnet::ext::LIST) return false;
    for (const JsonVal& item : value.list) {
      if (item.type != mxnet::ext::STR) return false;
      list->push_back(item.str);
    }
    return true;
  } catch (const mxnet::ext::JsonError&) {
    return false;
  }
}

/// The attributes of ONNX's operators whose texts may look like those of another type. An attribute
/// has one type in all operators and versions, but for what `schemaKind` says.
constexpr const char* kReal[] = {"alpha",
                                 "beta",
                                 "bias",
                                 "clip",
                                 "cubic_coeff_a",
                                 "decay_factor",
                                 "default_float",
                                 "epsilon",
                                 "extrapolation_value",
                                 "gamma",
                                 "height_scale",
                                 "high",
                                 "lambd",
                                 "low",
                                 "max",
                                 "mean",
                                 "min",
                                 "momentum",
                                 "norm_coefficient",
                                 "norm_coefficient_post",
                                 "ratio",
                                 "replaced_value_float",
                                 "scale",
                                 "seed",
                                 "softcap",
                                 "spatial_scale",
                                 "threshold",
                                 "value_float",
                                 "width_scale"};
constexpr const char* kReals[] = {"activation_alpha", "activation_beta", "base_values",
                                  "class_weights",    "coefficients",    "imputed_value_floats",
                                  "intercepts",       "kernel_params",   "keys_floats",
                                  "nodes_hitrates",   "nodes_values",    "offset",
                                  "prob_a",           "prob_b",          "rho",
                                  "scales",           "support_vectors", "target_weights",
                                  "value_floats",     "values_floats",   "weights"};
constexpr const char* kText[] = {"activation",
                                 "aggregate_function",
                                 "approximate",
                                 "auto_pad",
                                 "case_change_action",
                                 "cast_to",
                                 "coordinate_transformation_mode",
                                 "default_string",
                                 "delimiter",
                                 "direction",
                                 "equation",
                                 "keep_aspect_ratio_policy",
                                 "kernel_type",
                                 "locale",
                                 "map_form",
                                 "mode",
                                 "nearest_mode",
                                 "norm",
                                 "padding_mode",
                                 "pattern",
                                 "pixel_format",
                                 "post_transform",
                                 "reduction",
                                 "round_mode",
                                 "update_rule",
                                 "value_string",
                                 "y"};

template <std::size_t N>
bool isAmong(const char* const (&names)[N], Bytes key) {
  return std::find(std::begin(names), std::end(names), key) != std::end(names);
}

/// The type of an attribute of ONNX's operators; kUnknown where the text tells it, if it is written
/// as passlib writes it.
Kind schemaKind(const Node& node, Bytes key, const facts::Opsets& opsets) {
  const Bytes domain = attributeOf(node, onnx::keys::kDomain);
  const bool is_known = isOwnDomain(node) || domain == "ai.onnx.ml" ||
                        domain == "ai.onnx.preview" || domain == "ai.onnx.preview.training";
  if (!is_known) return Kind::kUnknown;
  const auto set = opsets.find(domain == "ai.onnx" ? Bytes() : domain);
  const int64_t version = set == opsets.end() ? 0 : set->second;
  if (key == "scale" && node.op == "Scaler") return Kind::kFloats;
  if (key == "seed" && node.op == "Dropout") return Kind::kInt;
  if (node.op == "TreeEnsemble") {
    if (key == "aggregate_function" || key == "post_transform") return Kind::kInt;
    if (key == "nodes_hitrates") return Kind::kTensor;
  }
  if (key == "p" && version == 1 && node.op != "LpNormalization") return Kind::kFloat;
  if (key == "value") return node.op == "Pad" ? Kind::kFloat : Kind::kTensor;
  if (key == "to" && version != 0 && version < 6) return Kind::kString;
  if (isAmong(kReal, key)) return Kind::kFloat;
  if (isAmong(kReals, key)) return Kind::kFloats;
  return isAmong(kText, key) ? Kind::kString : Kind::kUnknown;
}

/// Guesses the type of an attribute that has no schema.
Kind guessedKind(Bytes text) {
  float real = 0;
  if (isInteger(text)) return Kind::kInt;
  if (readReal(text, &real)) return Kind::kFloat;
  if (!isList(text)) return Kind::kString;
  std::vector<float> reals;
  std::vector<std::string> strings;
  const std::vector<Bytes> items = itemsOf(text);
  if (std::all_of(items.begin(), items.end(), isInteger)) return Kind::kInts;
  if (readAll(text, &reals, readReal)) return Kind::kFloats;
  return readStrings(text, &strings) ? Kind::kStrings : Kind::kString;
}

/// The place of the attribute of the file that a text refers to; nothing if it states the value.
std::optional<std::string> placeIn(Bytes text) {
  if (text.find("\"same_as\"") == Bytes::npos) return std::nullopt;
  try {
    const JsonVal whole = JsonVal::parse(std::string(text));
    const JsonVal* value = &whole;
    while (value->type == mxnet::ext::LIST && !value->list.empty()) value = &value->list.front();
    if (const JsonVal* values = memberOf(*value, "values")) value = values;
    const JsonVal* const place = memberOf(*value, "same_as");
    if (place == nullptr || place->type != mxnet::ext::STR) return std::nullopt;
    return place->str.substr(0, place->str.find('['));
  } catch (const mxnet::ext::JsonError&) {
    return std::nullopt;
  }
}

void appendReal(uint32_t number, float value, std::string* out) {
  onnx::appendVarint(number << 3U | onnx::kFixed32, out);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out->append(bytes, sizeof bytes);
}

/// The items of lists within each other, in order.
std::vector<const JsonVal*> flat(const JsonVal& value) {
  std::vector<const JsonVal*> items;
  std::vector<const JsonVal*> pending = {&value};
  while (!pending.empty()) {
    const JsonVal& item = *pending.back();
    pending.pop_back();
    if (item.type != mxnet::ext::LIST) {
      items.push_back(&item);
    } else {
      for (auto each = item.list.rbegin(); each != item.list.rend(); ++each)
        pending.push_back(&*each);
    }
  }
  return items;
}

/// ONNX's code of the element type that arrays call by this name; 0 if there is none.
int32_t codeNamed(Bytes name) {
  for (int32_t code = 1; code <= facts::kInt4; ++code) {
    const onnx::ElementType* const type = onnx::elementType(code);
    if (type != nullptr && name == type->name) return code;
  }
  return 0;
}

/// Sets an element to a number, a boolean or a name of infinity or NaN; false if its type lacks it.
bool setElement(const mxnet::ext::MXTensor& tensor, int32_t code, std::size_t pos,
                const JsonVal& value) {
  if (value.type == mxnet::ext::BOOL) {
    rules::setIntegerAt(tensor, pos, value.num);
    return true;
  }
  if (value.type == mxnet::ext::NUM && rules::isWhole(code)) {
    int64_t whole = 0;
    const double real = value.toDouble();
    const bool is_exact = std::fabs(real) < 9007199254740992.0 && real == std::trunc(real);
    if (is_exact) whole = static_cast<int64_t>(real);  // 1.0, too
    if (is_exact || value.toInteger(&whole)) {
      if (code != facts::kInt64 && !rules::fits(static_cast<double>(whole), code)) return false;
    } else {
      uint64_t bits = 0;
      const char* const end = value.str.data() + value.str.size();
      const auto read = std::from_chars(value.str.data(), end, bits);
      if (code != facts::kUint64 || read.ec != std::errc() || read.ptr != end) return false;
      whole = static_cast<int64_t>(bits);
    }
    rules::setIntegerAt(tensor, pos, whole);
    return true;
  }
  double real = value.toDouble();
  const bool is_name = value.type == mxnet::ext::STR;
  if (is_name ? !mxnet::ext::host::readReal(value.str, &real) : value.type != mxnet::ext::NUM)
    return false;
  if (!rules::isReal(code)) return false;
  rules::setElementAt(tensor, pos, real);
  return true;
}

/// Puts names of infinity and NaN, which Python's JSON has, into quotes.
std::string withoutNames(Bytes text) {
  std::string made;
  std::size_t done = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted) {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        quoted = false;
    } else if (text[i] == '"') {
      quoted = true;
    } else if (text[i] == 'I' || text[i] == 'N') {
      const std::size_t start = i > done && text[i - 1] == '-' ? i - 1 : i;
      const std::size_t end = std::min(text.find_first_of(",]} \t\r\n\"", i), text.size());
      made.append(text.substr(done, start - done)).append("\"");
      made.append(text.substr(start, end - start)).append("\"");
      done = end;
      i = end - 1;
    }
  }
  return made.append(text.substr(done));
}

bool readDims(const JsonVal& shape, std::vector<int64_t>* dims) {
  for (const JsonVal* each : flat(shape)) {
    dims->emplace_back();
    if (!each->toInteger(&dims->back())) return false;
  }
  return true;
}

void appendDims(uint32_t field, const std::vector<int64_t>& dims, std::string* out) {
  for (const int64_t dim : dims) onnx::appendNumber(field, static_cast<uint64_t>(dim), out);
}

/// Appends a TensorProto as a field; false if `value` does not describe one.
bool appendTensor(const JsonVal& value, uint32_t field, std::string* out) {
  const JsonVal* const dtype = memberOf(value, "dtype");
  const JsonVal* const shape = memberOf(value, "shape");
  const JsonVal* const data = memberOf(value, "data");
  if (dtype == nullptr || shape == nullptr || data == nullptr) return false;
  const int32_t code = codeNamed(dtype->str);
  std::vector<int64_t> dims;
  if (!readDims(*shape, &dims)) return false;
  const std::vector<const JsonVal*> items = flat(*data);
  const std::size_t count = onnx::countElements(dims, [] { return std::string("a tensor"); });
  if (code == 0 || count != items.size()) return false;
  std::string elements(count * onnx::elementType(code)->size, '\0');
  const mxnet::ext::MXTensor tensor(elements.data(), dims, rules::arrayType(code), 0,
                                    mxnet::ext::MXContext::CPU());
  for (std::size_t i = 0; i < count; ++i) {
    if (!setElement(tensor, code, i, *items[i])) return false;
  }
  std::string message;
  appendDims(numbers::kDims, dims, &message);
  onnx::appendNumber(numbers::kDataType, static_cast<uint64_t>(code), &message);
  onnx::appendBody(numbers::kRawData, elements, &message);
  onnx::appendBody(field, message, out);
  return true;
}

/// The same for a SparseTensorProto.
bool appendSparse(const JsonVal& value, uint32_t field, std::string* out) {
  const JsonVal* const shape = memberOf(value, "shape");
  const JsonVal* const values = memberOf(value, "values");
  const JsonVal* const indices = memberOf(value, "indices");
  std::vector<int64_t> dims;
  if (shape == nullptr || values == nullptr || indices == nullptr) return false;
  std::string message;
  if (!readDims(*shape, &dims) || !appendTensor(*values, numbers::kValues, &message) ||
      !appendTensor(*indices, numbers::kIndices, &message)) {
    return false;
  }
  appendDims(numbers::kSparseDims, dims, &message);
  onnx::appendBody(field, message, out);
  return true;
}

bool appendType(const JsonVal& value, uint32_t field, std::string* out) {
  std::string message;
  if (!onnx::readType(value, &message)) return false;
  onnx::appendBody(field, message, out);
  return true;
}

using Append = bool(const JsonVal& value, uint32_t field, std::string* out);

/// Appends a message, or each of a list.
bool appendMessages(Bytes text, bool is_list, Append* append, uint32_t field, std::string* out) {
  try {
    const JsonVal value = JsonVal::parse(withoutNames(text));
    if (!is_list) return append(value, field, out);
    return value.type == mxnet::ext::LIST &&
           std::all_of(value.list.begin(), value.list.end(),
                       [=](const JsonVal& each) { return append(each, field, out); });
  } catch (const mxnet::ext::JsonError&) {
    return false;
  } catch (const FormatError&) {
    return false;  // the shape
  }
}

/// Appends the value of an attribute; false if the text is not one of this type.
bool appendValue(Kind kind, Bytes text, std::string* out) {
  int64_t whole = 0;
  float real = 0;
  std::vector<int64_t> wholes;
  std::vector<float> reals;
  std::vector<std::string> strings;
  switch (kind) {
    case Kind::kInt:
      if (!readWhole(text, &whole)) return false;
      onnx::appendNumber(numbers::kI, static_cast<uint64_t>(whole), out);
      return true;
    case Kind::kFloat:
      if (!readReal(text, &real)) return false;
      appendReal(numbers::kF, real, out);
      return true;
    case Kind::kString:
      onnx::appendBody(numbers::kS, text, out);
      return true;
    case Kind::kInts:
      if (!readAll(text, &wholes, readWhole)) return false;
      for (const int64_t each : wholes) {
        onnx::appendNumber(numbers::kInts, static_cast<uint64_t>(each), out);
      }
      return true;
    case Kind::kFloats:
      if (!readAll(text, &reals, readReal)) return false;
      for (const float each : reals) appendReal(numbers::kFloats, each, out);
      return true;
    case Kind::kStrings:
      if (!readStrings(text, &strings)) return false;
      for (const std::string& each : strings) onnx::appendBody(numbers::kStrings, each, out);
      return true;
    case Kind::kTensor:
      return appendMessages(text, false, appendTensor, numbers::kT, out);
    case Kind::kTensors:
      return appendMessages(text, true, appendTensor, numbers::kTensors, out);
    case Kind::kSparseTensor:
      return appendMessages(text, false, appendSparse, numbers::kSparseTensor, out);
    case Kind::kSparseTensors:
      return appendMessages(text, true, appendSparse, numbers::kSparseTensors, out);
    case Kind::kTypeProto:
      return appendMessages(text, false, appendType, numbers::kTp, out);
    case Kind::kTypeProtos:
      return appendMessages(text, true, appendType, numbers::kTypeProtos, out);
    default:
      return false;
  }
}

const char* nameOf(Kind kind) {
  static const char* const kNames[] = {
      "UNDEFINED",      "FLOAT",      "INT",        "STRING",  "TENSOR", "GRAPH",
      "FLOATS",         "INTS",       "STRINGS",    "TENSORS", "GRAPHS", "SPARSE_TENSOR",
      "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS"};
  return kNames[static_cast<int>(kind)];
}

bool isShape(Bytes text) {
  if (text.size() < 2 || (text.front() != '[' && text.front() != '(')) return false;
  const Bytes inner = text.substr(1, text.size() - 2);
  return (text.back() == ']' || text.back() == ')') &&
         inner.find_first_not_of("-0123456789, ") == Bytes::npos;
}

}  // namespace

Bytes trimmed(Bytes text) {
  const auto isSpace = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && isSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && isSpace(text.back())) text.remove_suffix(1);
  return text;
}

int schemaKindOf(const Node& node, Bytes key, const facts::Opsets& opsets) {
  return static_cast<int>(schemaKind(node, key, opsets));
}

onnx::MadeAttribute makeAttribute(const Node& node, Bytes key, Bytes text, int kind) {
  if (std::optional<std::string> place = placeIn(text)) return {"", std::move(place)};
  const bool is_type = kind > 0 && kind <= static_cast<int>(Kind::kTypeProtos);
  Kind type = is_type ? static_cast<Kind>(kind) : Kind::kUnknown;
  if (type == Kind::kUnknown) type = guessedKind(text);
  onnx::MadeAttribute made;
  onnx::appendBody(numbers::kName, key, &made.message);
  if (!appendValue(type, text, &made.message)) {
    const bool is_graph = type == Kind::kGraph || type == Kind::kGraphs;
    const char* const reason =
        is_graph ? ": passes can keep or copy nested graphs, not make them from text" : "";
    throw UnsupportedError("node " + shown(node.name) + " (" + node.op + "): attribute " +
                           shown(key) + ": " + shown(onnx::shortened(text, 60)) +
                           " is not a value of type " + nameOf(type) + reason);
  }
  onnx::appendNumber(numbers::kType, static_cast<uint64_t>(type), &made.message);
  return made;
}

onnx::StatedType statedType(const Node& variable, std::optional<int32_t> code) {
  const Bytes type = attributeOf(variable, "__dtype__");
  const Bytes shape = attributeOf(variable, "__shape__");
  const std::string title = "variable " + shown(variable.name);
  if (type.data() == nullptr && !code) {
    throw UnsupportedError(title +
                           " is new and has no values; allocate them with alloc_arg, or state the "
                           "type of a new model input as __dtype__ and __shape__");
  }
  if (type.data() != nullptr) {
    int64_t number = 0;
    if (type.size() > 3 || !readInteger(type, &number) || number < 0) {
      throw UnsupportedError(title + ": __dtype__ " + shown(type) + " is not a number");
    }
    code = rules::onnxType(static_cast<mxnet::ext::MXDType>(number));
    if (*code == 0) {
      throw UnsupportedError(title + ": ONNX has no element type of number " + std::string(type));
    }
  }
  if (shape.data() == nullptr) return {code, std::nullopt};
  std::vector<int64_t> sizes;
  if (!isShape(shape) || !readAll(shape, &sizes, readInteger)) {
    throw UnsupportedError(title + ": __shape__ " + shown(shape) + " is not a shape");
  }
  for (int64_t& size : sizes) size = size > 0 ? size : -1;
  return {code, sizes};
}

}  // namespace passlib::model
