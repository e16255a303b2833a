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

inline JsonVal jsonOf(const OptionValue& value) {
  switch (value.kind) {
    case OptionValue::kBoolean:
      return JsonVal::boolean(value.integer != 0);
    case OptionValue::kInteger:
      return JsonVal::integer(value.integer);
    case OptionValue::kReal:
      return JsonVal::real(value.real);
    case OptionValue::kText:
      break;
  }
  return JsonVal(value.text);
}

inline JsonVal jsonOf(const std::vector<OptionValue>& values) {
  JsonVal list(LIST);
  for (const OptionValue& item : values) list.list.push_back(jsonOf(item));
  return list;
}

inline JsonVal jsonOf(const std::vector<std::string>& texts) {
  JsonVal list(LIST);
  for (const std::string& item : texts) list.list.push_back(JsonVal(item));
  return list;
}

/// Adds the declared defaults of a pass to the options that the caller gave, in the same form.
__attribute__((__cold__)) inline void addDefaults(const char* name, options_map_t* options) {
  Registry<PassDeclaration>* declared = Registry<PassDeclaration>::get();
  for (int pos = 0; pos < declared->size(); ++pos) {
    const PassDeclaration& pass = declared->get(pos);
    if (pass.name != name) continue;
    for (const OptionDeclaration& option : pass.options) {
      const OptionValue& preset = option.preset;
      std::string text = preset.kind == OptionValue::kText ? preset.text : jsonOf(preset).dump();
      if (preset.kind == OptionValue::kBoolean) text = preset.integer != 0 ? "True" : "False";
      if (preset.is_list) {
        text = "[";
        for (const OptionValue& item : preset.items) {
          text += (text.size() == 1 ? "" : ", ") + jsonOf(item).dump();
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

/// Sets a member of an object. Cold, like other functions that run once in a library or a call:
/// they are compiled for size.
__attribute__((__cold__)) inline JsonVal& setMember(JsonVal* object, const char* key,
                                                    JsonVal value) {
  JsonVal& member = object->map[JsonVal(key)];
  member = std::move(value);
  return member;
}

__attribute__((__cold__)) inline const char* describePasses() {
  JsonVal passes(LIST);
  Registry<PassDeclaration>* declared = Registry<PassDeclaration>::get();
  for (int pos = 0; pos < declared->size(); ++pos) {
    const PassDeclaration& pass = declared->get(pos);
    JsonVal object(MAP);
    setMember(&object, "name", JsonVal(pass.name));
    setMember(&object, "description", JsonVal(pass.description));
    setMember(&object, "any_options", JsonVal::boolean(pass.any_options));
    setMember(&object, "needs_weights", JsonVal::boolean(pass.needs_weights));
    if (pass.weights_on_demand) setMember(&object, "weights_on_demand", JsonVal::boolean(true));
    setMember(&object, "needs_shapes", JsonVal::boolean(pass.needs_shapes));
    setMember(&object, "dialects", jsonOf(pass.dialects));
    JsonVal& options = setMember(&object, "options", JsonVal(LIST));
    for (const OptionDeclaration& option : pass.options) {
      JsonVal member(MAP);
      setMember(&member, "name", JsonVal(option.name));
      setMember(&member, "description", JsonVal(option.description));
      setMember(&member, "kind", JsonVal(kindName(option.preset.kind)));
      setMember(&member, "list", JsonVal::boolean(option.preset.is_list));
      setMember(&member, "default",
                option.preset.is_list ? jsonOf(option.preset.items) : jsonOf(option.preset));
      setMember(&member, "choices", jsonOf(option.choices));
      setMember(&member, "range", jsonOf(option.range));
      options.list.push_back(std::move(member));
    }
    if (pass.exact) setMember(&object, "exact", JsonVal::boolean(true));
    if (!pass.triggers.empty()) setMember(&object, "triggers", jsonOf(pass.triggers));
    if (!pass.pipelines.empty()) {
      JsonVal joins(MAP);
      setMember(&joins, "pipelines", jsonOf(pass.pipelines));
      setMember(&joins, "after", JsonVal(pass.after));
      setMember(&joins, "cost", JsonVal(pass.cost));
      JsonVal& always = setMember(&joins, "options", JsonVal(MAP));
      for (const auto& each : pass.pipeline_options)
        setMember(&always, each.first.c_str(), jsonOf(each.second));
      JsonVal& rounding = setMember(&joins, "rounding", JsonVal(MAP));
      for (const auto& each : pass.rounding_options)
        setMember(&rounding, each.first.c_str(), jsonOf(each.second));
      setMember(&object, "joins", std::move(joins));
    }
    passes.list.push_back(std::move(object));
  }
  JsonVal all(MAP);
  setMember(&all, "version", JsonVal(1));
  setMember(&all, "passes", std::move(passes));
  static const std::string& text = *new std::string(all.dump());
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
  if (!option.choices.empty()) wanted += " of " + jsonOf(option.choices).dump();
  if (!option.range.empty()) wanted += " in the range " + jsonOf(option.range).dump();
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
