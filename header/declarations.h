// ---- declarations ------------------------------------------------------------------------------

/// The declaration of one option of a pass.
struct OptionDeclaration {
  std::string name;
  OptionValue preset;
  std::string description;
  std::vector<OptionValue> choices;  ///< the only values, if there are any
  std::vector<OptionValue> range;    ///< the smallest and the largest number, or nothing
};

/// The declaration of a pass, set by the functions of CustomPass.
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
  bool enters_functions = false;
  std::vector<std::string> triggers;
  std::string cost = "nodes";
  std::vector<std::string> pipelines;
  std::string after;
  std::vector<std::pair<std::string, OptionValue> > pipeline_options;
  std::vector<std::pair<std::string, OptionValue> > rounding_options;
  typedPass_t body = nullptr;
};

namespace detail {

/// Installed by passes with declarations; a library without any does not contain it.
struct DeclaredPasses {
  /// Returns the declarations as JSON.
  const char* (*describe)();
  /// Runs a body with declared options. Returns false if `function` is none.
  bool (*run)(graphPass_t function, const char* name, Graph* graph, const options_map_t& options,
              MXReturnValue* result);
  static DeclaredPasses* get() {
    static DeclaredPasses installed = {nullptr, nullptr};
    return &installed;
  }
};

/// The form in which hosts know a body with declared options. Only runTyped may call it.
inline graphPass_t opaqueBody(typedPass_t body) {
  return reinterpret_cast<graphPass_t>(reinterpret_cast<void (*)()>(body));
}

inline bool runTyped(graphPass_t function, const char* name, Graph* graph,
                     const options_map_t& options, MXReturnValue* result) {
  Registry<PassDeclaration>* declared = Registry<PassDeclaration>::get();
  const PassDeclaration* found = nullptr;
  for (int pos = 0; pos < declared->size(); ++pos) {
    const PassDeclaration& each = declared->get(pos);
    if (each.body == nullptr || opaqueBody(each.body) != function) continue;
    if (found == nullptr || each.name == name) found = &each;
  }
  if (found == nullptr) return false;
  *result = found->body(graph, OptionValues(*found, options));
  return true;
}

inline void addDefaults(const char* name, options_map_t* options);

inline bool runDeclared(graphPass_t function, const char* name, Graph* graph,
                        const options_map_t& options, MXReturnValue* result) {
  if (runTyped(function, name, graph, options, result)) return true;
  options_map_t all(options);
  addDefaults(name, &all);
  *result = function(graph, all);
  return true;
}

inline void appendJson(const std::string& text, TextBuffer* out) {
  appendString(text.data(), text.size(), false, out);
}

inline void appendJson(const std::vector<OptionValue>& values, TextBuffer* out);

inline void appendJson(const OptionValue& value, TextBuffer* out) {
  if (value.is_list) return appendJson(value.items, out);
  switch (value.kind) {
    case OptionValue::kBoolean:
      return out->append(std::string(value.integer != 0 ? "true" : "false"));
    case OptionValue::kInteger:
      return out->append(printed("%lld", static_cast<long long>(value.integer)));
    case OptionValue::kReal:
      return out->append(shortestText(value.real));
    case OptionValue::kText:
      break;
  }
  appendJson(value.text, out);
}

inline void appendJson(const std::vector<OptionValue>& values, TextBuffer* out) {
  out->push_back('[');
  for (const OptionValue& item : values) {
    if (&item != &values[0]) out->push_back(',');
    appendJson(item, out);
  }
  out->push_back(']');
}

template <typename Value>
std::string jsonOf(const Value& value) {
  TextBuffer text;
  appendJson(value, &text);
  return text.str();
}

/// Adds the declared defaults of a pass to the options that the caller gave, in the same form.
__attribute__((__cold__)) inline void addDefaults(const char* name, options_map_t* options) {
  Registry<PassDeclaration>* declared = Registry<PassDeclaration>::get();
  for (int pos = 0; pos < declared->size(); ++pos) {
    const PassDeclaration& pass = declared->get(pos);
    if (pass.name != name) continue;
    for (const OptionDeclaration& option : pass.options) {
      const OptionValue& preset = option.preset;
      std::string text = preset.kind == OptionValue::kText ? preset.text : jsonOf(preset);
      if (preset.kind == OptionValue::kBoolean) text = preset.integer != 0 ? "True" : "False";
      if (preset.is_list) {
        text = "[";
        for (const OptionValue& item : preset.items) {
          text += (text.size() == 1 ? "" : ", ") + jsonOf(item);
        }
        text += "]";
      }
      options->emplace(option.name, text);
    }
  }
}

inline const char* kindName(OptionValue::Kind kind) {
  static const char* const names[] = {"boolean", "integer", "real", "text"};
  return names[kind];
}

/// Appends a member behind others of an object. Cold, like other functions that run once in a
/// library or a call: they are compiled for size.
__attribute__((__cold__)) inline void appendMember(const char* key, const std::string& json,
                                                   TextBuffer* out) {
  out->append(printed(",\"%s\":%s", key, json.c_str()));
}

__attribute__((__cold__)) inline void appendFlag(const char* key, bool value, TextBuffer* out) {
  appendMember(key, value ? "true" : "false", out);
}

__attribute__((__cold__)) inline std::string jsonOf(const std::vector<std::string>& texts) {
  TextBuffer text;
  appendTexts(texts, &text);
  return text.str();
}

/// The options that a pass has in a pipeline. Of those for one key, the last counts.
__attribute__((__cold__)) inline std::string jsonOf(
    const std::vector<std::pair<std::string, OptionValue> >& options) {
  TextBuffer text;
  text.push_back('{');
  for (const auto& option : options) {
    if (&option != &options[0]) text.push_back(',');
    appendJson(option.first, &text);
    text.push_back(':');
    appendJson(option.second, &text);
  }
  text.push_back('}');
  return text.str();
}

__attribute__((__cold__)) inline const char* describePasses() {
  TextBuffer out;
  out.append("{\"version\":1,\"passes\":[");
  Registry<PassDeclaration>* declared = Registry<PassDeclaration>::get();
  for (int pos = 0; pos < declared->size(); ++pos) {
    const PassDeclaration& pass = declared->get(pos);
    if (pos > 0) out.push_back(',');
    out.append("{\"name\":");
    appendJson(pass.name, &out);
    appendMember("description", jsonOf(pass.description), &out);
    appendFlag("any_options", pass.any_options, &out);
    appendFlag("needs_weights", pass.needs_weights, &out);
    if (pass.weights_on_demand) appendFlag("weights_on_demand", true, &out);
    appendFlag("needs_shapes", pass.needs_shapes, &out);
    appendMember("dialects", jsonOf(pass.dialects), &out);
    out.append(",\"options\":[");
    for (const OptionDeclaration& option : pass.options) {
      if (&option != &pass.options[0]) out.push_back(',');
      out.append("{\"name\":");
      appendJson(option.name, &out);
      appendMember("description", jsonOf(option.description), &out);
      appendMember("kind", jsonOf(std::string(kindName(option.preset.kind))), &out);
      appendFlag("list", option.preset.is_list, &out);
      appendMember("default", jsonOf(option.preset), &out);
      appendMember("choices", jsonOf(option.choices), &out);
      appendMember("range", jsonOf(option.range), &out);
      out.push_back('}');
    }
    out.push_back(']');
    if (pass.exact) appendFlag("exact", true, &out);
    if (pass.enters_functions) appendFlag("enters_functions", true, &out);
    if (!pass.triggers.empty()) appendMember("triggers", jsonOf(pass.triggers), &out);
    if (!pass.pipelines.empty()) {
      out.append(",\"joins\":{\"pipelines\":");
      out.append(jsonOf(pass.pipelines));
      appendMember("after", jsonOf(pass.after), &out);
      appendMember("cost", jsonOf(pass.cost), &out);
      appendMember("options", jsonOf(pass.pipeline_options), &out);
      appendMember("rounding", jsonOf(pass.rounding_options), &out);
      out.push_back('}');
    }
    out.push_back('}');
  }
  out.append("]}");
  static const std::string& text = *new std::string(out.str());
  return text.c_str();
}

/// Reads an option's text as a value of the declared kind. False for other text.
inline bool readOption(OptionValue::Kind kind, const std::string& text, OptionValue* value) {
  bool flag = false;
  value->kind = kind;
  switch (kind) {
    case OptionValue::kBoolean:
      if (!readBoolean(text, &flag)) return false;
      value->integer = flag ? 1 : 0;
      return true;
    case OptionValue::kInteger:
      return readInteger(text, &value->integer);
    case OptionValue::kReal:
      return readReal(text, &value->real);
    case OptionValue::kText:
      break;
  }
  value->text = text;
  return true;
}

inline double numberOf(const OptionValue& value) {
  return value.kind == OptionValue::kReal ? value.real : static_cast<double>(value.integer);
}

/// Whether choices and range of an option accept a value.
inline bool accepts(const OptionDeclaration& option, const OptionValue& value) {
  const double number = numberOf(value);
  if (!option.range.empty() &&
      !(number >= numberOf(option.range[0]) && number <= numberOf(option.range[1]))) {
    return false;
  }
  for (const OptionValue& choice : option.choices) {
    if (value.kind == OptionValue::kText ? choice.text == value.text : numberOf(choice) == number) {
      return true;
    }
  }
  return option.choices.empty();
}

/// Returns the value that a text gives to an option. Throws std::invalid_argument.
__attribute__((__cold__)) inline OptionValue optionValue(const OptionDeclaration& option,
                                                         const std::string& text) {
  const OptionValue::Kind kind = option.preset.kind;
  OptionValue value(false);
  value.kind = kind;
  value.is_list = option.preset.is_list;
  std::vector<std::string> texts(1, text);
  bool valid = true;
  if (value.is_list) {
    texts.clear();
    valid = readList(text, &texts);
  }
  for (const std::string& each : texts) {
    OptionValue item(false);
    valid = valid && readOption(kind, each, &item) && accepts(option, item);
    if (value.is_list) {
      value.items.push_back(item);
    } else {
      value = item;
    }
  }
  if (valid) return value;
  std::string wanted = value.is_list ? std::string("a list of ") : std::string();
  wanted += kindName(kind);
  if (!option.choices.empty()) wanted += " of " + jsonOf(option.choices);
  if (!option.range.empty()) wanted += " in the range " + jsonOf(option.range);
  throw std::invalid_argument("option " + detail::quoted(option.name) + " takes " + wanted +
                              ", not " + detail::quoted(text));
}

}  // namespace detail

inline OptionValues::OptionValues(const PassDeclaration& declaration, const options_map_t& given) {
  std::string names;
  for (const OptionDeclaration& option : declaration.options) {
    names += (names.empty() ? "" : ", ") + option.name;
    const auto found = given.find(option.name);
    values_.emplace(option.name, found == given.end() ? option.preset
                                                      : detail::optionValue(option, found->second));
  }
  for (const auto& pair : given) {
    if (values_.count(pair.first) == 0 && !declaration.any_options) {
      throw std::invalid_argument("there is no option " + detail::quoted(pair.first) + " (" +
                                  (names.empty() ? "the pass has none" : "there are: " + names) +
                                  ")");
    }
    given_.insert(pair);
  }
}

inline const OptionValue& OptionValues::find(const std::string& name, int kind,
                                             bool is_list) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    throw std::logic_error("the pass declares no option " + detail::quoted(name));
  }
  if (found->second.kind != kind || found->second.is_list != is_list) {
    throw std::logic_error("option " + detail::quoted(name) + " is declared as " +
                           (found->second.is_list ? "a list of " : "") +
                           detail::kindName(found->second.kind));
  }
  return found->second;
}

inline bool OptionValues::boolean(const std::string& name) const {
  return find(name, OptionValue::kBoolean, false).integer != 0;
}
inline int64_t OptionValues::integer(const std::string& name) const {
  return find(name, OptionValue::kInteger, false).integer;
}
inline double OptionValues::real(const std::string& name) const {
  return find(name, OptionValue::kReal, false).real;
}
inline const std::string& OptionValues::text(const std::string& name) const {
  return find(name, OptionValue::kText, false).text;
}
inline std::vector<bool> OptionValues::booleans(const std::string& name) const {
  std::vector<bool> values;
  for (const OptionValue& item : find(name, OptionValue::kBoolean, true).items) {
    values.push_back(item.integer != 0);
  }
  return values;
}
inline std::vector<int64_t> OptionValues::integers(const std::string& name) const {
  std::vector<int64_t> values;
  for (const OptionValue& item : find(name, OptionValue::kInteger, true).items) {
    values.push_back(item.integer);
  }
  return values;
}
inline std::vector<double> OptionValues::reals(const std::string& name) const {
  std::vector<double> values;
  for (const OptionValue& item : find(name, OptionValue::kReal, true).items) {
    values.push_back(item.real);
  }
  return values;
}
inline std::vector<std::string> OptionValues::texts(const std::string& name) const {
  std::vector<std::string> values;
  for (const OptionValue& item : find(name, OptionValue::kText, true).items) {
    values.push_back(item.text);
  }
  return values;
}
inline bool OptionValues::given(const std::string& name) const { return given_.count(name) != 0; }

inline PassDeclaration& CustomPass::declare() {
  if (declaration == nullptr) {
    declaration = &Registry<PassDeclaration>::get()->add(name);
    *detail::DeclaredPasses::get() = {&detail::describePasses, &detail::runDeclared};
  }
  return *declaration;
}

inline CustomPass& CustomPass::setBody(graphPass_t function) {
  pass = function;
  return *this;
}

inline CustomPass& CustomPass::setBody(typedPass_t function) {
  declare().body = function;
  pass = detail::opaqueBody(function);
  return *this;
}

inline CustomPass& CustomPass::describe(const char* text) {
  declare().description = text;
  return *this;
}

inline CustomPass& CustomPass::dialects(std::initializer_list<const char*> names) {
  return dialects(std::vector<std::string>(names.begin(), names.end()));
}

inline CustomPass& CustomPass::dialects(const std::vector<std::string>& names) {
  declare().dialects = names;
  return *this;
}

inline CustomPass& CustomPass::option(const char* key, const OptionValue& preset,
                                      const char* text) {
  declare().options.push_back(OptionDeclaration{key, preset, text, {}, {}});
  return *this;
}

inline CustomPass& CustomPass::option(const char* key, const OptionValue& preset, const char* text,
                                      std::initializer_list<OptionValue> choices) {
  declare().options.push_back(OptionDeclaration{key, preset, text, choices, {}});
  return *this;
}

inline CustomPass& CustomPass::option(const char* key, const OptionValue& preset, const char* text,
                                      const OptionValue& low, const OptionValue& high) {
  declare().options.push_back(OptionDeclaration{key, preset, text, {}, {low, high}});
  return *this;
}

inline CustomPass& CustomPass::anyOptions() {
  declare().any_options = true;
  return *this;
}

inline CustomPass& CustomPass::needsWeights(bool wanted) {
  declare().needs_weights = wanted;
  return *this;
}

inline CustomPass& CustomPass::weightsOnDemand() {
  declare().weights_on_demand = true;
  return *this;
}

inline CustomPass& CustomPass::needsShapes(bool wanted) {
  declare().needs_shapes = wanted;
  return *this;
}

inline CustomPass& CustomPass::exact() {
  declare().exact = true;
  return *this;
}

inline CustomPass& CustomPass::entersFunctions() {
  declare().enters_functions = true;
  return *this;
}

inline CustomPass& CustomPass::triggers(const std::vector<std::string>& ops) {
  declare().triggers = ops;
  return *this;
}

inline CustomPass& CustomPass::cost(const char* grows_with) {
  declare().cost = grows_with;
  return *this;
}

inline CustomPass& CustomPass::joins(const char* pipeline, const char* after) {
  declare().pipelines.push_back(pipeline);
  declare().after = after;
  return *this;
}

inline CustomPass& CustomPass::inPipelines(const char* key, const OptionValue& value) {
  declare().pipeline_options.emplace_back(key, value);
  return *this;
}

inline CustomPass& CustomPass::whenRounding(const char* key, const OptionValue& value) {
  declare().rounding_options.emplace_back(key, value);
  return *this;
}
