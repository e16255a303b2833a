// passlib._core.Library and calls of its passes.

#include "library/library.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/calls/exit_gate.h"
#include "bindings/calls/native_call.h"
#include "bindings/common.h"
#include "bindings/weights/lending.h"
#include "bindings/weights/scaled_array.h"
#include "errors.h"
#include "graph/source.h"
#include "library/declarations.h"
#include "library/pass.h"
#include "platform/library_file.h"

namespace passlib {
namespace {

template <typename Item>
std::vector<std::string> namesOf(const std::vector<Item>& items) {
  std::vector<std::string> names;
  for (const Item& item : items) names.push_back(item.name);
  return names;
}

/// Returns the JSON of the declarations after declarationsOf has checked it.
py::bytes checkedDeclarations(const Library& library) {
  declarationsOf(library);
  return library.declarations();
}

/// Texts of a file in any encoding.
std::vector<py::bytes> asBytes(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

/// The partitioners of a library, each with the names of its strategies.
std::vector<std::pair<std::string, std::vector<std::string>>> listPartitioners(
    const Library& library) {
  std::vector<std::pair<std::string, std::vector<std::string>>> list;
  for (const Library::Partitioner& partitioner : library.partitioners()) {
    list.emplace_back(partitioner.name, namesOf(partitioner.strategies));
  }
  return list;
}

/// New arguments, and new auxiliary states: arrays by name. `lent`: states, arguments.
py::tuple takeParams(std::vector<NewParam> params, const py::function& type_of,
                     const LentArrays* const (&lent)[2]) {
  std::map<int, py::dtype> types;
  py::dict args;
  py::dict aux;
  for (NewParam& param : params) {
    auto type = types.find(param.dtype);
    if (type == types.end()) type = types.emplace(param.dtype, type_of(param.dtype)).first;
    py::dict& among = param.is_arg ? args : aux;
    if (param.scaled) {
      const py::array& source = lent[param.scaled->of_arg ? 1 : 0]->array(param.scaled->number);
      ScaledArray made(source, type->second, std::move(param.shape),
                       std::move(param.scaled->elements));
      // Arrays in memory may be views of some that the caller writes to later.
      among[decode(param.name)] =
          made.elements().isOfFile() ? py::cast(std::move(made)) : py::object(made.compute());
    } else {
      among[decode(param.name)] = ownedArray(std::move(param.memory), type->second, param.shape);
    }
  }
  return py::make_tuple(std::move(args), std::move(aux));
}

/// By Handover.
constexpr const char* kHandovers[] = {"flat", "json"};

Handover handoverNamed(const std::string& name) {
  const auto* found = std::find(std::begin(kHandovers), std::end(kHandovers), name);
  if (found == std::end(kHandovers)) throw py::value_error("no way to hand a graph over: " + name);
  return static_cast<Handover>(found - kHandovers);
}

/// Infers types while a pass runs, at its first question.
class TypesOnDemand {
 public:
  /// `infer`: a function that returns the texts of __ext_shape__ and __ext_dtype__ of each node. It
  /// keeps its exceptions for the caller of the pass.
  explicit TypesOnDemand(const py::object& infer) : infer_(infer) {}

  /// In any thread. Returns null after an exception, or while the interpreter ends.
  const mxnet::ext::FlatText* read() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!asked_ && !isEnding())
      withGil([](void* self) { static_cast<TypesOnDemand*>(self)->ask(); }, this);
    asked_ = true;
    return spans_.empty() ? nullptr : spans_.data();
  }

 private:
  void ask() {
    try {
      texts_ = infer_().cast<std::vector<std::pair<std::string, std::string>>>();
    } catch (py::error_already_set&) {
      return;
    }
    for (const auto& [shape, type] : texts_) {
      spans_.push_back({shape.data(), shape.size()});
      spans_.push_back({type.data(), type.size()});
    }
  }

  const py::object& infer_;
  std::mutex mutex_;
  bool asked_ = false;
  std::vector<std::pair<std::string, std::string>> texts_;
  std::vector<mxnet::ext::FlatText> spans_;
};

/// The settings of a call that are not parameters or options of the pass.
struct CallSettings {
  bool accept_args;
  bool accept_aux;
  Handover handover;
  bool consume;
  bool ordered;
};

/// Opens a library; what it prints meanwhile goes to `write`, a function of a str.
std::shared_ptr<Library> openLibrary(const std::string& path, int version,
                                     const py::function& write) {
  const GateHold hold;
  std::shared_ptr<Library> library;
  runCaptured(write, [&](OnInterrupt how) { library = Library::open(path, version, how); });
  warnAfterCall(*library);
  return library;
}

/// Runs a pass; its output goes to `write`, a function of a str; `type_of` returns the element type
/// of one of MXNet's numbers; `types`: see TypesOnDemand, or None. Returns the graph, its top-level
/// attributes, new arguments and states by name, and the names of removed variables.
py::tuple callPass(const std::shared_ptr<Library>& library, std::size_t index,
                   const std::shared_ptr<GraphSource>& graph, const AttributeTexts& attributes,
                   const OptionList& options, const LentArrays& args, const LentArrays& aux,
                   const CallSettings& settings, const py::object& types,
                   const py::function& type_of, const py::function& write) {
  const GateHold hold;
  TypesOnDemand on_demand(types);
  PassCall call{library.get(),
                index,
                parseAttributes(attributes),
                options,
                args.block(),
                aux.block(),
                settings.accept_args,
                settings.accept_aux,
                settings.handover,
                settings.consume,
                settings.ordered,
                {}};
  if (!types.is_none()) call.types = [&]() { return on_demand.read(); };
  // Attributes that the pass leaves alone keep their original text.
  const AttributeTexts printed = printAttributes(call.attributes);
  PassResult result;
  const std::string what = describePass(call);
  const auto fail = [&](const std::string& problem) { throw PassError(what + " " + problem); };
  runNative({*library, what, fail}, write, [&]() { result = runPass(call, graph.get()); });
  const py::tuple params = takeParams(std::move(result.params), type_of, {&aux, &args});
  AttributeTexts texts = printAttributes(result.graph->attrs);
  for (auto& [key, text] : texts) {
    const auto before = printed.find(key);
    if (before != printed.end() && before->second == text) text = attributes.at(key);
  }
  result.graph->attrs.clear();
  return py::make_tuple(
      std::make_shared<GraphSource>(std::move(result.graph), std::move(result.kinds)), texts,
      params, result.gone);
}

}  // namespace

void bindLibraries(py::module_* m) {
  py::class_<Library, std::shared_ptr<Library>>(*m, "Library")
      .def(py::init(&openLibrary), py::arg("path"), py::arg("version"), py::arg("write"))
      .def_property_readonly("path", &Library::path)
      .def_property_readonly("unique_symbols", &Library::uniqueSymbols)
      .def_property_readonly("abi_version", &Library::abiVersion)
      .def_property_readonly("passes", [](const Library& l) { return namesOf(l.passes()); })
      .def_property_readonly("partitioners", &listPartitioners)
      .def_property_readonly("operators", [](const Library& l) { return namesOf(l.operators()); })
      .def_property_readonly(
          "handover", [](const Library& l) { return kHandovers[static_cast<int>(l.handover())]; })
      .def_property_readonly("is_ours", &Library::isOurs)
      .def_property_readonly("flat_version", &Library::flatVersion)
      .def_property_readonly("declarations", &checkedDeclarations);

  py::class_<LibraryFile>(*m, "LibraryFile")
      .def(py::init(&readLibraryFile), py::arg("path"))
      .def_readonly("machine", &LibraryFile::machine)
      .def_property_readonly("exports", [](const LibraryFile& f) { return asBytes(f.exports); })
      .def_property_readonly("imports", [](const LibraryFile& f) { return asBytes(f.imports); })
      .def_property_readonly("needed", [](const LibraryFile& f) { return asBytes(f.needed); })
      .def_property_readonly("versions", [](const LibraryFile& f) { return asBytes(f.versions); })
      .def_property_readonly("compilers",
                             [](const LibraryFile& f) { return asBytes(f.compilers); });

  py::class_<CallSettings>(*m, "CallSettings")
      .def(py::init([](bool accept_args, bool accept_aux, const std::string& handover, bool consume,
                       bool ordered) {
             return CallSettings{accept_args, accept_aux, handoverNamed(handover), consume,
                                 ordered};
           }),
           py::kw_only(), py::arg("accept_args"), py::arg("accept_aux"), py::arg("handover"),
           py::arg("consume"), py::arg("ordered"));

  m->def("run_pass", &callPass, py::arg("library"), py::arg("index"), py::arg("graph"),
         py::arg("attributes"), py::arg("options"), py::arg("args"), py::arg("aux"),
         py::arg("settings"), py::arg("types"), py::arg("type_of"), py::arg("write"));
}

}  // namespace passlib
