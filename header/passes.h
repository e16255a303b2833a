// ================================================================================================
// Passes, options, registration
// ================================================================================================

/// Options of a call: texts by name.
typedef std::unordered_map<std::string, std::string> options_map_t;

/// A pass: changes the graph in place. `options` are the keyword arguments of optimize_for, as
/// text, and the declared defaults. After MX_FAIL or an exception the caller's model is unchanged.
///
/// A pass may start threads, which must end before it returns. They may call at the same time what
/// says "Threads may call it": passInterrupted, MX_ERROR_MSG, Node::readTensor, alloc_arg and
/// alloc_aux of different nodes, and everything that reads the graph. What changes the graph is for
/// one thread while no other uses the graph: connect, replace, insertAfter, addNode, removeNode,
/// addParameter, setAttr, patterns. An exception that leaves a thread ends the process, as always
/// in C++.
typedef MXReturnValue (*graphPass_t)(Graph* graph, const options_map_t& options);

class OptionValues;
/// The body of a pass with declared options.
typedef MXReturnValue (*typedPass_t)(Graph* graph, const OptionValues& options);

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
  explicit CustomPass(const char* pass_name = "ERROR") : name(pass_name) {}
  CustomPass& setBody(graphPass_t function);
  CustomPass& setBody(typedPass_t function);

  /// A description of the pass, in a sentence or a few.
  CustomPass& describe(const char* text);
  /// The families of models that it works on; without this, all.
  CustomPass& dialects(std::initializer_list<const char*> names);
  CustomPass& dialects(const std::vector<std::string>& names);
  /// Declares an option, whose default the body gets unless the caller gives a value. Its type is
  /// that of the default: bool, integer, real, text, or a list of one of these, such as {1, 2} or
  /// std::vector<std::string>(). Choices and range, both ends included, hold for each item of a
  /// list.
  CustomPass& option(const char* key, const OptionValue& preset, const char* text);
  CustomPass& option(const char* key, const OptionValue& preset, const char* text,
                     std::initializer_list<OptionValue> choices);
  CustomPass& option(const char* key, const OptionValue& preset, const char* text,
                     const OptionValue& low, const OptionValue& high);
  /// The pass takes options beside those that it declares.
  CustomPass& anyOptions();
  /// Whether the pass reads or writes weights: if not, Node::tensor is null on parameters that the
  /// model has already. By default true.
  CustomPass& needsWeights(bool wanted = true);
  /// The pass reads weights by Node::readTensor() only, and changes none in place: until then,
  /// tensors of parameters have shape and type, and data_ptr is null in passlib. What it does not
  /// ask for costs nothing.
  CustomPass& weightsOnDemand();
  /// Whether the pass reads inferred shapes and types: if not, none are inferred for it. By default
  /// true; then they are inferred when the pass first reads one.
  CustomPass& needsShapes(bool wanted = true);
  /// The pass keeps every bit of the model's results. Without this, they may change by rounding.
  CustomPass& exact();
  /// The pass also runs on the body of each local function of an ONNX model, which is then the
  /// graph. It must keep inputs, outputs and operators of the domain "referring", which stand for
  /// the results and for operators that read attributes of the call.
  CustomPass& entersFunctions();
  /// The pass changes no graph without one of these operators. Without this, it may change any.
  CustomPass& triggers(const std::vector<std::string>& ops);
  /// The time of the pass grows with this, for pipelines that it joins: "nodes", the default;
  /// "weights"; or "runs", if it computes operators.
  CustomPass& cost(const char* grows_with);
  /// The pass is part of a named pipeline: "simplify", or "clean" if it is exact. It runs behind
  /// the pass `after`, or at the end.
  CustomPass& joins(const char* pipeline, const char* after = "");
  /// The value of a declared option in the pipelines that the pass joins.
  CustomPass& inPipelines(const char* key, const OptionValue& value);
  /// The same where results may change by rounding, and in rare cases more: "simplify" by default.
  CustomPass& whenRounding(const char* key, const OptionValue& value);

  const char* name;
  graphPass_t pass = nullptr;
  PassDeclaration* declaration = nullptr;  ///< null without any; owned by the registry

 private:
  PassDeclaration& declare();
};

/// The options of a call in the types of their declarations: the given values, otherwise the
/// defaults. Where the host does not check options, as MXNet, they are checked here: throws
/// std::invalid_argument for an option that is unknown, has another type or is out of range.
class OptionValues {
 public:
  OptionValues(const PassDeclaration& declaration, const options_map_t& given);

  // The value of an option; of a list that of all items. Throw std::logic_error if the pass
  // declares no such option, or one of another type.
  bool boolean(const std::string& name) const;
  int64_t integer(const std::string& name) const;
  double real(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  std::vector<bool> booleans(const std::string& name) const;
  std::vector<int64_t> integers(const std::string& name) const;
  std::vector<double> reals(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name) const;
  /// Whether the caller gave an option, be it with the value of the default.
  bool given(const std::string& name) const;

 private:
  const OptionValue& find(const std::string& name, int kind, bool is_list) const;
  std::map<std::string, OptionValue> values_;
  options_map_t given_;
};

/// Whether the user wants the running call to end, as after Ctrl-C in Python. A pass that may take
/// long asks from time to time and returns MX_FAIL, which leaves the model unchanged. Threads may
/// call it. Always false in hosts that do not tell, such as MXNet.
bool passInterrupted();

/// Registers a pass under a name: REGISTER_PASS(myPass).setBody(myPass);
#define REGISTER_PASS(Name)                                                            \
  static mxnet::ext::CustomPass& MX_STR_CONCAT(MX_STR_CONCAT(MXNet_CustomPass_, Name), \
                                               __COUNTER__) __attribute__((unused)) =  \
      mxnet::ext::Registry<mxnet::ext::CustomPass>::get() -> add(MX_TOSTRING(Name))

}  // namespace passlib_api
}  // namespace ext
}  // namespace mxnet

/// Every library defines this function, which the host calls once, after loading, with the number
/// of its MXNet version, such as 10901 for 1.9.1. MX_FAIL makes the host reject the library.
extern "C" PASSLIB_EXPORT mxnet::ext::MXReturnValue initialize(int version);
