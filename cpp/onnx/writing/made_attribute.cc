#include "onnx/writing/made_attribute.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "onnx/text/strings.h"
#include "onnx/wire/numbers.h"
#include "onnx/wire/output.h"

namespace passlib::onnx {
namespace {

using namespace numbers;  // NOLINT: this file only

/// Names of attributes by type. A test compares them with the schemas of package onnx. Left out:
/// `seed`, `p`, `to` and `value`, whose types depend on the operator and the operator set.
constexpr Bytes kReals[] = {"alpha",
                            "beta",
                            "bias",
                            "clip",
                            "cubic_coeff_a",
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
                            "ratio",
                            "scale",
                            "softcap",
                            "spatial_scale",
                            "value_float",
                            "width_scale"};
constexpr Bytes kWholes[] = {"align_corners",
                             "allowzero",
                             "antialias",
                             "axis",
                             "batch_axis",
                             "batch_dims",
                             "block_size",
                             "blocksize",
                             "broadcast",
                             "ceil_mode",
                             "center_point_box",
                             "chunk_size",
                             "count_include_pad",
                             "detect_negative",
                             "detect_positive",
                             "dtype",
                             "end",
                             "exclude_outside",
                             "exclusive",
                             "fmod",
                             "group",
                             "hidden_size",
                             "ignore_index",
                             "input_forget",
                             "interleaved",
                             "inverse",
                             "is_case_sensitive",
                             "is_causal",
                             "is_test",
                             "k",
                             "keepdims",
                             "kv_num_heads",
                             "largest",
                             "layout",
                             "left_window_size",
                             "linear_before_reset",
                             "max_gram_length",
                             "max_skip_count",
                             "maxsplit",
                             "min_gram_length",
                             "new_axis",
                             "noop_with_empty_axes",
                             "num_groups",
                             "num_heads",
                             "num_outputs",
                             "num_scan_inputs",
                             "offset_group",
                             "onesided",
                             "output_datatype",
                             "output_dtype",
                             "output_height",
                             "output_sequence",
                             "output_width",
                             "periodic",
                             "precision",
                             "q_num_heads",
                             "qk_matmul_output_mode",
                             "reverse",
                             "right_window_size",
                             "rotary_embedding_dim",
                             "sample_size",
                             "sampling_ratio",
                             "saturate",
                             "select_last_index",
                             "size",
                             "softmax_precision",
                             "sorted",
                             "spatial",
                             "start",
                             "stash_type",
                             "storage_order",
                             "time_axis",
                             "training_mode",
                             "transA",
                             "transB",
                             "upper",
                             "value_int"};
constexpr Bytes kTexts[] = {"activation",
                            "approximate",
                            "auto_pad",
                            "case_change_action",
                            "coordinate_transformation_mode",
                            "delimiter",
                            "direction",
                            "equation",
                            "keep_aspect_ratio_policy",
                            "locale",
                            "mode",
                            "nearest_mode",
                            "padding_mode",
                            "pattern",
                            "pixel_format",
                            "reduction",
                            "round_mode",
                            "update_rule",
                            "value_string"};
constexpr Bytes kRealLists[] = {"activation_alpha", "activation_beta", "scales", "value_floats",
                                "weights"};
constexpr Bytes kWholeLists[] = {"axes",
                                 "consumed_inputs",
                                 "dilations",
                                 "directions",
                                 "ends",
                                 "kernel_shape",
                                 "ngram_counts",
                                 "ngram_indexes",
                                 "output_padding",
                                 "output_shape",
                                 "paddings",
                                 "pads",
                                 "perm",
                                 "pool_int64s",
                                 "pooled_shape",
                                 "scan_input_axes",
                                 "scan_input_directions",
                                 "scan_output_axes",
                                 "scan_output_directions",
                                 "shape",
                                 "split",
                                 "starts",
                                 "strides",
                                 "value_ints"};

std::unordered_map<Bytes, Kind> allNames() {
  std::unordered_map<Bytes, Kind> names;
  for (const Bytes name : kReals) names[name] = Kind::kFloat;
  for (const Bytes name : kWholes) names[name] = Kind::kInt;
  for (const Bytes name : kTexts) names[name] = Kind::kString;
  for (const Bytes name : kRealLists) names[name] = Kind::kFloats;
  for (const Bytes name : kWholeLists) names[name] = Kind::kInts;
  return names;
}

template <typename Number>
bool parse(Bytes text, Number* number) {
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, *number);
  return read.ec == std::errc() && read.ptr == end;
}

bool appendWhole(uint32_t field, Bytes text, std::string* out) {
  int64_t value = 0;
  if (!parse(text, &value)) return false;
  appendNumber(field, static_cast<uint64_t>(value), out);
  return true;
}

bool appendReal(uint32_t field, Bytes text, std::string* out) {
  double value = 0;
  if (!parse(text, &value) || !(std::fabs(value) <= std::numeric_limits<float>::max())) {
    return false;
  }
  const auto narrow = static_cast<float>(value);
  char bytes[sizeof narrow];
  std::memcpy(bytes, &narrow, sizeof narrow);
  appendVarint(uint64_t{field} << 3 | kFixed32, out);
  out->append(bytes, sizeof bytes);
  return true;
}

/// Appends the items of `[1, 2]` or `(1, 2)`.
template <typename Append>
bool appendItems(Bytes text, Append append) {
  if (text.size() < 2) return false;
  const char closing = text.front() == '[' ? ']' : text.front() == '(' ? ')' : '\0';
  if (closing == '\0' || text.back() != closing) return false;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    Bytes item = text.substr(0, comma);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (!item.empty() && !append(item)) return false;
    text = comma == Bytes::npos ? Bytes() : text.substr(comma + 1);
  }
  return true;
}

bool appendValue(Bytes text, Kind kind, std::string* out) {
  switch (kind) {
    case Kind::kInt:
      return appendWhole(kI, text, out);
    case Kind::kFloat:
      return appendReal(kF, text, out);
    case Kind::kString:
      if (!isName(text)) return false;
      appendBody(kS, text, out);
      return true;
    case Kind::kInts:
      return appendItems(text, [&](Bytes item) { return appendWhole(kInts, item, out); });
    case Kind::kFloats:
      return appendItems(text, [&](Bytes item) { return appendReal(kFloats, item, out); });
    default:
      return false;
  }
}

}  // namespace

Kind typeByName(Bytes name) {
  static const std::unordered_map<Bytes, Kind> kNames = allNames();
  const auto found = kNames.find(name);
  return found == kNames.end() ? Kind::kUnknown : found->second;
}

std::optional<std::string> makeAttribute(Bytes name, Bytes text, Kind kind) {
  std::string made;
  appendBody(kName, name, &made);
  // A text that stands for an attribute of the file is not a value.
  if (text.find("\"same_as\"") != Bytes::npos || !appendValue(text, kind, &made)) return {};
  appendNumber(kType, static_cast<uint64_t>(kind), &made);
  return made;
}

}  // namespace passlib::onnx
