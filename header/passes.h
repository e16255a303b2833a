/// A pass: changes the graph in place. After MX_FAIL or an exception the caller's model is
/// unchanged. `options` are the keyword arguments of optimize_for, as text, with the declared
/// defaults.
///
/// A pass may start threads, which must end before it returns. Several of them may at the same time
/// call passInterrupted, MX_ERROR_MSG, Node::readTensor, and alloc_arg and alloc_aux of different
/// nodes; and they may read the graph: its vectors, attributes and tensors, shapeOf, typeOf, users,
/// onlyUser, isOutput, isParameter. What changes the graph (connect, replace, addNode, removeNode,
/// addParameter, attributes, patterns) is for one thread while no other uses the graph. An
/// exception that leaves a thread ends the process, as everywhere in C++.
typedef MXReturnValue (*graphPass_t)(Graph* graph, const options_map_t& options);

/// The value of an option: true or false, a whole number, a real number, text, or a list of one of
/// these.
class OptionValue {
 public:
  enum Kind { kBoolean, kInteger, kReal, kText };
  OptionValue(bool value) : kind(kBoolean), integer(value ? 1 : 0) {}       // NOLINT: implicit
  OptionValue(int value) : kind(kInteger), integer(value) {}                // NOLINT
  OptionValue(long value) : kind(kInteger), integer(value) {}               // NOLINT
  OptionValue(long long value) : kind(kInteger), integer(value) {}          // NOLINT
  OptionValue(double value) : kind(kReal), real(value) {}                   // NOLINT
  OptionValue(std::string value) : kind(kText), text(std::move(value)) {}   // NOLINT
  OptionValue(const char* value) : kind(kText), text(value) {}              // NOLINT
  PASSLIB_ON_DEMAND OptionValue(std::initializer_list<OptionValue> values)  // NOLINT
      : kind(values.size() == 0 ? kText : values.begin()->kind), is_list(true), items(values) {}
  /// A list that may be empty.
  PASSLIB_ON_DEMAND OptionValue(const std::vector<bool>& values)
      : OptionValue(kBoolean, values) {}  // NOLINT
  PASSLIB_ON_DEMAND OptionValue(const std::vector<int>& values)
      : OptionValue(kInteger, values) {}  // NOLINT
  PASSLIB_ON_DEMAND OptionValue(const std::vector<int64_t>& values)
      : OptionValue(kInteger, values) {}  // NOLINT
  PASSLIB_ON_DEMAND OptionValue(const std::vector<double>& values)
      : OptionValue(kReal, values) {}  // NOLINT
  PASSLIB_ON_DEMAND OptionValue(const std::vector<std::string>& values)
      : OptionValue(kText, values) {}  // NOLINT

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

/// What a pass declares of one option.
struct OptionDeclaration {
  std::string name;
  OptionValue preset;
  std::string description;
  std::vector<OptionValue> choices;  ///< the only values, if there are any
  std::vector<OptionValue> range;    ///< the smallest and the largest number, or nothing
};

struct PassDeclaration;

/// The options of a call in the types of their declarations: the given values, otherwise the
/// defaults. Where the host does not check options, as MXNet, they are checked here: throws
/// std::invalid_argument for an option that is unknown, has another type or is out of range.
class OptionValues {
 public:
  PASSLIB_ON_DEMAND OptionValues(const PassDeclaration& declaration, const options_map_t& given);

  // The value of an option; of a list that of all items. Throw std::logic_error if the pass
  // declares no such option, or one of another type.
  PASSLIB_ON_DEMAND bool boolean(const std::string& name) const;
  PASSLIB_ON_DEMAND int64_t integer(const std::string& name) const;
  PASSLIB_ON_DEMAND double real(const std::string& name) const;
  PASSLIB_ON_DEMAND const std::string& text(const std::string& name) const;
  PASSLIB_ON_DEMAND std::vector<bool> booleans(const std::string& name) const;
  PASSLIB_ON_DEMAND std::vector<int64_t> integers(const std::string& name) const;
  PASSLIB_ON_DEMAND std::vector<double> reals(const std::string& name) const;
  PASSLIB_ON_DEMAND std::vector<std::string> texts(const std::string& name) const;
  /// Whether the caller gave an option, be it with the value of the default.
  PASSLIB_ON_DEMAND bool given(const std::string& name) const;

 private:
  PASSLIB_ON_DEMAND const OptionValue& find(const std::string& name, OptionValue::Kind kind,
                                            bool is_list) const;
  std::map<std::string, OptionValue> values_;
  options_map_t given_;
};

/// The body of a pass with declared options.
typedef MXReturnValue (*typedPass_t)(Graph* graph, const OptionValues& options);

/// What a pass says about itself, made by the functions of CustomPass.
struct PassDeclaration {
  explicit PassDeclaration(const char* pass_name) : name(pass_name) {}
  std::string name;
  std::string description;
  std::vector<std::string> dialects;
  std::vector<OptionDeclaration> options;
  bool any_options = false;
  bool needs_weights = true;
  bool weights_on_demand = false;
  bool needs_shapes = true;
  bool exact = false;
  std::vector<std::string> triggers;
  std::string cost = "nodes";
  std::vector<std::string> pipelines;
  std::string after;
  std::vector<std::pair<std::string, OptionValue> > pipeline_options;
  std::vector<std::pair<std::string, OptionValue> > rounding_options;
  typedPass_t body = nullptr;
};

/// A pass as registered by a library:
///
///     REGISTER_PASS(foldScale)
///         .setBody(foldScale)
///         .describe("Folds Mul and Add behind a convolution into its weights.")
///         .dialects({"onnx", "mxnet"})
///         .option("bias", "auto", "Whether to add a bias.", {"auto", "never"})
///         .option("level", 1, "How far to go.", 1, 3)
///         .needsShapes(false);
///
/// All but setBody are declarations. With any of them, the pass has exactly the options that it
/// declares, and the host refuses others; without, it takes any, as in MXNet, which ignores
/// declarations.
class CustomPass {
 public:
  CustomPass() : name("ERROR"), pass(nullptr), declaration(nullptr) {}
  explicit CustomPass(const char* pass_name)
      : name(pass_name), pass(nullptr), declaration(nullptr) {}
  CustomPass& setBody(graphPass_t function) {
    pass = function;
    return *this;
  }
  PASSLIB_ON_DEMAND CustomPass& setBody(typedPass_t function);

  /// What the pass does, in a sentence or a few.
  PASSLIB_ON_DEMAND CustomPass& describe(const char* text);
  /// The families of models that it works on; without this, all.
  PASSLIB_ON_DEMAND CustomPass& dialects(std::initializer_list<const char*> names);
  PASSLIB_ON_DEMAND CustomPass& dialects(const std::vector<std::string>& names);
  /// Declares an option, whose default the body gets unless the caller gives a value. Its type is
  /// that of the default: bool, integer, real, text, or a list of
  /// one of these, such as {1, 2} or std::vector<std::string>(). Choices and range, both ends
  /// included, hold for each item of a list.
  PASSLIB_ON_DEMAND CustomPass& option(const char* key, const OptionValue& preset,
                                       const char* text);
  PASSLIB_ON_DEMAND CustomPass& option(const char* key, const OptionValue& preset, const char* text,
                                       std::initializer_list<OptionValue> choices);
  PASSLIB_ON_DEMAND CustomPass& option(const char* key, const OptionValue& preset, const char* text,
                                       const OptionValue& low, const OptionValue& high);
  /// The pass takes options beside those that it declares.
  PASSLIB_ON_DEMAND CustomPass& anyOptions();
  /// Whether the pass reads or writes weights: if not, Node::tensor is null on parameters that the
  /// model has already. By default true.
  PASSLIB_ON_DEMAND CustomPass& needsWeights(bool wanted = true);
  /// The pass reads weights by Node::readTensor() only, and changes none in place: until then,
  /// tensors of parameters have shape and type, and data_ptr is null in passlib. What it does not
  /// ask for costs nothing.
  PASSLIB_ON_DEMAND CustomPass& weightsOnDemand();
  /// Whether the pass reads inferred shapes and types: if not, none are inferred for it. By default
  /// true; then they are inferred when the pass first reads one.
  PASSLIB_ON_DEMAND CustomPass& needsShapes(bool wanted = true);
  /// The pass keeps every bit of the model's results. Without this, they may change by rounding.
  PASSLIB_ON_DEMAND CustomPass& exact();
  /// The pass changes no graph without one of these operators. Without this, it may change any.
  PASSLIB_ON_DEMAND CustomPass& triggers(const std::vector<std::string>& ops);
  /// What the time of the pass grows with, for pipelines that it joins: "nodes", the default;
  /// "weights"; or "runs", if it computes operators.
  PASSLIB_ON_DEMAND CustomPass& cost(const char* grows_with);
  /// The pass is part of a named pipeline: "simplify", or "clean" if it is exact. It runs behind
  /// the pass `after`, or at the end.
  PASSLIB_ON_DEMAND CustomPass& joins(const char* pipeline, const char* after = "");
  /// The value of a declared option in the pipelines that the pass joins.
  PASSLIB_ON_DEMAND CustomPass& inPipelines(const char* key, const OptionValue& value);
  /// The same where results may change by rounding, and in rare cases more: "simplify" by default.
  PASSLIB_ON_DEMAND CustomPass& whenRounding(const char* key, const OptionValue& value);

  const char* name;
  graphPass_t pass;
  PassDeclaration* declaration;  ///< null without any; owned by the registry

 private:
  PASSLIB_ON_DEMAND PassDeclaration& declare();
};

/// Whether the user wants the call that runs now to end, as after Ctrl-C in Python. A pass that may
/// take long asks from time to time and returns MX_FAIL, which leaves the model unchanged. Any
/// thread may ask. Always false under a host that never tells, such as MXNet.
bool passInterrupted();
