// ---- values of options
// ---------------------------------------------------------------------------

#define MX_STR_CONCAT_(__a, __b) __a##__b
#define MX_STR_CONCAT(__a, __b) MX_STR_CONCAT_(__a, __b)
#define MX_STRINGIFY(x) #x
#define MX_TOSTRING(x) MX_STRINGIFY(x)

/// Registers a pass of patterns; lib_patterns.h defines it.
#define PATTERN_PASS(Name, ...)                                                        \
  static_assert(sizeof(#Name) == 0, "PATTERN_PASS needs #include \"lib_patterns.h\""); \
  static void MXNet_PatternsOf_##Name()

namespace mxnet {
namespace ext {
inline namespace passlib_api {

/// The value of an option: true or false, a whole number, a real number, text, or a list of one of
/// these.
class OptionValue {
 public:
  enum Kind { kBoolean, kInteger, kReal, kText };
  OptionValue(bool value) : kind(kBoolean), integer(value ? 1 : 0) {}      // NOLINT: implicit
  OptionValue(int value) : kind(kInteger), integer(value) {}               // NOLINT
  OptionValue(long value) : kind(kInteger), integer(value) {}              // NOLINT
  OptionValue(long long value) : kind(kInteger), integer(value) {}         // NOLINT
  OptionValue(double value) : kind(kReal), real(value) {}                  // NOLINT
  OptionValue(std::string value) : kind(kText), text(std::move(value)) {}  // NOLINT
  OptionValue(const char* value) : kind(kText), text(value) {}             // NOLINT
  OptionValue(std::initializer_list<OptionValue> values)                   // NOLINT
      : kind(values.size() == 0 ? kText : values.begin()->kind), is_list(true), items(values) {}
  /// A list that may be empty.
  OptionValue(const std::vector<bool>& values) : OptionValue(kBoolean, values) {}      // NOLINT
  OptionValue(const std::vector<int>& values) : OptionValue(kInteger, values) {}       // NOLINT
  OptionValue(const std::vector<int64_t>& values) : OptionValue(kInteger, values) {}   // NOLINT
  OptionValue(const std::vector<double>& values) : OptionValue(kReal, values) {}       // NOLINT
  OptionValue(const std::vector<std::string>& values) : OptionValue(kText, values) {}  // NOLINT

  Kind kind;  ///< of a list: of its items
  bool is_list = false;
  int64_t integer = 0;  ///< of kInteger; 0 or 1 of kBoolean
  double real = 0;
  std::string text;
  std::vector<OptionValue> items;

 private:
  template <typename Values>
  OptionValue(Kind of_items, const Values& values)
      : kind(of_items), is_list(true), items(values.begin(), values.end()) {}
};
