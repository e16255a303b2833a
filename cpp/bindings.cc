// The module passlib._core: pybind11 and nothing else.

#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bindings_common.h"
#include "bindings_operator.h"
#include "bindings_partition.h"
#include "check.h"
#include "errors.h"
#include "graph.h"
#include "json_objects.h"
#include "lib_api.h"
#include "library.h"
#include "pass.h"
#include "source.h"

namespace passlib {
namespace {

using mxnet::ext::JsonError;
using mxnet::ext::JsonVal;

using NodeAttribute = std::tuple<std::size_t, std::string, std::string>;

void setJsonError(const JsonError& error) {
  const bool unsound = error.code == mxnet::ext::kJsonRange ||
                       error.code == mxnet::ext::kJsonCycle ||
                       error.code == mxnet::ext::kJsonDuplicateName;
  using namespace py::literals;  // NOLINT: this function only
  setError(unsound ? "UnsoundFileError" : "FormatError", error.what(),
           py::dict("offset"_a = error.offset, "line"_a = error.line, "column"_a = error.column));
}

void translate(std::exception_ptr pointer) {
  try {
    if (pointer) std::rethrow_exception(pointer);
  } catch (const JsonError& error) {
    setJsonError(error);
  } catch (const PassResultError& error) {
    setLibraryError("PassResultError", error);
  } catch (const PassError& error) {
    setLibraryError("PassError", error);
  } catch (const LoadError& error) {
    setError("LoadError", error.what());
  } catch (const GraphError& error) {
    setError("GraphError", error.what());
  } catch (const mxnet::ext::GraphStructureError& error) {
    setError("GraphError", error.what());
  }
}

/// Keeps a Python object alive for as long as C++ needs its memory.
std::shared_ptr<void> keepAlive(const py::object& object) {
  return std::shared_ptr<void>(object.inc_ref().ptr(), [](void* pointer) {
    const py::gil_scoped_acquire acquired;
    py::handle(static_cast<PyObject*>(pointer)).dec_ref();
  });
}

/// Reads a graph from str or bytes, whose memory it goes on using.
std::shared_ptr<GraphSource> parseGraph(const py::object& source, bool lenient, bool ordered) {
  const char* text = nullptr;
  py::ssize_t size = 0;
  if (PyUnicode_Check(source.ptr())) {
    text = PyUnicode_AsUTF8AndSize(source.ptr(), &size);
    if (text == nullptr) throw py::error_already_set();
  } else {
    char* bytes = nullptr;
    if (PyBytes_AsStringAndSize(source.ptr(), &bytes, &size) != 0) throw py::error_already_set();
    text = bytes;
  }
  const std::shared_ptr<void> owner = keepAlive(source);
  const py::gil_scoped_release released;
  mxnet::ext::JsonOptions reading;
  reading.allow_control_characters = lenient;
  return std::make_shared<GraphSource>(std::string_view(text, static_cast<std::size_t>(size)),
                                       owner, reading, ordered);
}

py::str makeString(mxnet::ext::detail::TextBuffer* buffer) {
  if (!buffer->isAscii()) {
    const std::string text = buffer->str();
    PyObject* string =
        PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), nullptr);
    if (string == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::str>(string);
  }
  auto blocks = buffer->take();
  std::size_t size = 0;
  for (const auto& block : blocks) size += block.size;
  PyObject* string = PyUnicode_New(static_cast<py::ssize_t>(size), 127);
  if (string == nullptr) throw py::error_already_set();
  char* target = static_cast<char*>(PyUnicode_DATA(string));
  for (auto& block : blocks) {
    std::memcpy(target, block.text.get(), block.size);
    target += block.size;
    block.text.reset();  // a large text need not be there twice
  }
  return py::reinterpret_steal<py::str>(string);
}

py::str printGraph(GraphSource& source, bool pretty, const AttributeTexts& texts) {
  mxnet::ext::detail::TextBuffer buffer;
  {
    const py::gil_scoped_release released;
    mxnet::ext::detail::GraphWriter(pretty, &buffer).write(*source.get(), parseAttributes(texts));
  }
  return makeString(&buffer);
}

py::list entryList(const std::vector<NodeEntry>& entries, const NodeTable& table) {
  py::list list;
  for (const NodeEntry& entry : entries) {
    list.append(py::make_tuple(table.find(entry.node), entry.entry, entry.version));
  }
  return list;
}

/// The type of the items of Graph.nodes(). Made when the module is, and never destroyed.
PyTypeObject* node_tuple = nullptr;

void addNodeTuple(py::module_* m) {
  using namespace py::literals;  // NOLINT: this function only
  const py::object type =
      py::module_::import("collections")
          .attr("namedtuple")("NodeTuple",
                              py::make_tuple("op", "name", "attrs", "inputs", "num_outputs",
                                             "control_deps", "subgraphs"),
                              "module"_a = m->attr("__name__"));
  type.attr("__doc__") = "One node of a graph; entries and dependencies refer to positions.";
  m->attr("NodeTuple") = type;
  node_tuple = reinterpret_cast<PyTypeObject*>(type.inc_ref().ptr());
}

/// Makes a named tuple of the fields: tuple.__new__(NodeTuple, fields), without a call in Python.
py::object nodeTuple(const py::tuple& fields) {
  const py::tuple arguments = py::make_tuple(fields);
  PyObject* made = PyTuple_Type.tp_new(node_tuple, arguments.ptr(), nullptr);
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

/// One NodeTuple a node.
py::list listNodes(GraphSource& source) {
  const std::shared_ptr<const Graph> shared = source.get();
  const Graph& graph = *shared;
  const NodeTable table(graph.nodes);
  py::list list;
  for (const Node* node : graph.nodes) {
    py::dict attrs;
    for (const auto& [key, value] : node->attrs) attrs[py::str(key)] = py::str(value);
    py::list deps;
    for (const Node* dep : node->control_deps) deps.append(table.find(dep));
    py::list subgraphs;
    for (const Graph* subgraph : node->subgraphs) {
      subgraphs.append(std::make_shared<GraphSource>(copyGraph(*subgraph)));
    }
    list.append(
        nodeTuple(py::make_tuple(node->op, node->name, attrs, entryList(node->inputs, table),
                                 node->num_outputs, deps, subgraphs)));
  }
  return list;
}

std::string_view textOf(const py::handle& string) {
  py::ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(string.ptr(), &size);
  if (text == nullptr) throw py::error_already_set();
  return std::string_view(text, static_cast<std::size_t>(size));
}

/// Reads a node's position, the number of its output and, if it is there, a version.
NodeEntry entryAt(const Graph& graph, const py::handle& item) {
  const auto numbers = py::reinterpret_steal<py::object>(
      PySequence_Fast(item.ptr(), "an entry is a sequence of two or three numbers"));
  if (!numbers) throw py::error_already_set();
  PyObject** const items = PySequence_Fast_ITEMS(numbers.ptr());
  const auto size = PySequence_Fast_GET_SIZE(numbers.ptr());
  if (size < 2) throw py::value_error("an entry is a sequence of two or three numbers");
  const auto number = [&](py::ssize_t i) {
    return i < size ? py::handle(items[i]).cast<int>() : 0;
  };
  return NodeEntry(graph.nodes.at(static_cast<std::size_t>(number(0))), number(1), number(2));
}

/// The reverse of listNodes. Inputs must refer to earlier nodes.
std::shared_ptr<GraphSource> buildGraph(const py::list& nodes, const py::list& heads) {
  auto graph = std::make_unique<Graph>();
  graph->nodes.reserve(nodes.size());
  for (const py::handle& item : nodes) {
    const py::tuple fields(py::reinterpret_borrow<py::object>(item));
    Node* node = graph->addNode(std::string(textOf(fields[1])), std::string(textOf(fields[0])));
    const auto attributes = fields[2].cast<py::dict>();
    node->attrs.reserve(attributes.size());
    for (const auto& [key, value] : attributes) node->attrs.emplace(textOf(key), textOf(value));
    if (const int outputs = fields[4].cast<int>()) node->_declareOutputs(outputs);
    if (node->op == "null") graph->inputs.push_back(node);
    const auto inputs = fields[3].cast<py::sequence>();
    node->inputs.reserve(inputs.size());
    for (const py::handle& input : inputs) {
      const NodeEntry entry = entryAt(*graph, input);
      entry.node->outputs.emplace_back(node, static_cast<int>(node->inputs.size()));
      node->inputs.push_back(entry);
    }
    for (const py::handle& dep : fields[5].cast<py::sequence>()) {
      node->control_deps.push_back(graph->nodes.at(dep.cast<std::size_t>()));
    }
    for (const py::handle& subgraph : fields[6].cast<py::sequence>()) {
      node->subgraphs.push_back(nullptr);
      node->subgraphs.back() =
          copyGraph(*subgraph.cast<std::shared_ptr<GraphSource>>()->get()).release();
    }
  }
  for (const py::handle& head : heads) graph->outputs.push_back(entryAt(*graph, head));
  return std::make_shared<GraphSource>(std::move(graph));
}

/// What a schema knows of numbers of outputs, by operator: fixed ones, operators whose number
/// depends on their attributes, and those of them that have the outputs of the graph they carry.
struct OutputTable {
  std::unordered_map<std::string, int> fixed;
  std::unordered_set<std::string> varying;
  std::unordered_set<std::string> carrying;

  /// The number of outputs that the graph within a node tells; 0 if none does.
  int carried(const Node& node) const {
    if (node.subgraphs.empty() || carrying.count(node.op) == 0) return 0;
    return std::max(static_cast<int>(node.subgraphs[0]->outputs.size()), 1);
  }
};

/// Nodes whose number of outputs the schema should be asked for: position, op, attrs, number now,
/// number that the graph within tells.
py::list doubtfulOutputs(GraphSource& source, const OutputTable& table) {
  const std::shared_ptr<const Graph> graph = source.get();
  py::list list;
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    const Node& node = *graph->nodes[i];
    const auto fixed = table.fixed.find(node.op);
    const int carried = table.carried(node);
    const int known = fixed != table.fixed.end() ? fixed->second : carried;
    const bool settled = known != 0 ? node.num_outputs == known
                                    : node.num_outputs > 0 && table.varying.count(node.op) == 0;
    if (!settled) list.append(py::make_tuple(i, node.op, node.attrs, node.num_outputs, carried));
  }
  return list;
}

void setOutputs(GraphSource& source, const std::vector<std::pair<std::size_t, int>>& counts) {
  Graph* graph = source.edit();
  for (const auto& [position, count] : counts) graph->nodes.at(position)->_declareOutputs(count);
}

/// The nodes with these operators: position, op, attrs, number of inputs, nested graphs.
py::list listNodesWith(GraphSource& source, const std::unordered_set<std::string>& operators) {
  const std::shared_ptr<const Graph> graph = source.get();
  py::list list;
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    const Node& node = *graph->nodes[i];
    if (operators.count(node.op) == 0) continue;
    py::list subgraphs;
    for (const Graph* subgraph : node.subgraphs) {
      subgraphs.append(std::make_shared<GraphSource>(copyGraph(*subgraph)));
    }
    list.append(py::make_tuple(i, node.op, node.attrs, node.inputs.size(), subgraphs));
  }
  return list;
}

/// How often each operator occurs.
std::unordered_map<std::string, int> countOperators(GraphSource& source) {
  const std::shared_ptr<const Graph> graph = source.get();
  std::unordered_map<std::string, int> counts;
  for (const Node* node : graph->nodes) ++counts[node->op];
  return counts;
}

/// Where variables are used: name of the variable, its attributes, and operator, attributes and
/// input number of a consumer.
py::list listUses(GraphSource& source, const std::unordered_set<std::string>& names) {
  const std::shared_ptr<const Graph> graph = source.get();
  py::list uses;
  for (const Node* node : graph->nodes) {
    for (std::size_t i = 0; i < node->inputs.size(); ++i) {
      const Node& variable = *node->inputs[i].node;
      if (variable.op != "null" || names.count(variable.name) == 0) continue;
      uses.append(py::make_tuple(variable.name, variable.attrs, node->op, node->attrs, i));
    }
  }
  return uses;
}

void setNodeAttributes(GraphSource& source, const std::vector<NodeAttribute>& values) {
  Graph* graph = source.edit();
  for (const auto& [position, key, value] : values) graph->nodes.at(position)->attrs[key] = value;
}

void dropNodeAttributes(GraphSource& source, const std::vector<std::string>& keys) {
  mxnet::ext::detail::forEachGraph(source.edit(), [&](Graph* graph) {
    for (Node* node : graph->nodes) {
      for (const std::string& key : keys) node->attrs.erase(key);
    }
  });
}

AttributeTexts printAttributes(const std::map<std::string, JsonVal>& attributes) {
  AttributeTexts texts;
  for (const auto& [key, value] : attributes) texts.emplace(key, value.dump());
  return texts;
}

/// Positions of the pairs whose arrays differ in any bit. Both of a pair must be C-contiguous.
std::vector<std::size_t> differingArrays(const py::iterable& pairs) {
  std::vector<std::size_t> positions;
  std::size_t position = 0;
  for (const py::handle& item : pairs) {
    const auto pair = item.cast<py::tuple>();
    const auto left = pair[0].cast<py::array>();
    const auto right = pair[1].cast<py::array>();
    const auto bytes = static_cast<std::size_t>(left.nbytes());
    const bool same_place = left.data() == right.data() || bytes == 0;
    if (left.nbytes() != right.nbytes() ||
        (!same_place && std::memcmp(left.data(), right.data(), bytes) != 0)) {
      positions.push_back(position);
    }
    ++position;
  }
  return positions;
}

/// A new parameter as (name, is_arg, dtype code, shape, bytes); the bytes own the memory.
py::tuple takeParam(NewParam param) {
  void* memory = param.data.release();
  const py::capsule owner(memory, [](void* pointer) { FreeMemory()(pointer); });
  const py::array_t<uint8_t> bytes({static_cast<py::ssize_t>(param.bytes)}, {1},
                                   static_cast<const uint8_t*>(memory), owner);
  return py::make_tuple(param.name, param.is_arg, param.dtype, py::tuple(py::cast(param.shape)),
                        bytes);
}

/// What a Python caller says about a call, besides the parameters.
struct CallSettings {
  bool accept_args;
  bool accept_aux;
  bool force_json;
  bool consume;
  bool ordered;
};

/// Runs a pass. What it prints goes to `write`, a function of a str. Gives the graph, its top-level
/// attributes, new parameters, and the names of variables that are gone.
py::tuple callPass(const std::shared_ptr<Library>& library, std::size_t index,
                   const std::shared_ptr<GraphSource>& graph, const AttributeTexts& attributes,
                   const OptionList& options, const py::list& args, const py::list& aux,
                   const CallSettings& settings, const py::function& write) {
  PassCall call{library.get(),
                index,
                parseAttributes(attributes),
                options,
                makeBlock(args),
                makeBlock(aux),
                settings.accept_args,
                settings.accept_aux,
                settings.force_json,
                settings.consume,
                settings.ordered};
  // What the pass leaves alone keeps the text that it came in.
  const AttributeTexts printed = printAttributes(call.attributes);
  PassResult result;
  runCaptured(write, [&]() { result = runPass(call, graph.get()); });
  py::list params;
  for (NewParam& param : result.params) params.append(takeParam(std::move(param)));
  AttributeTexts texts = printAttributes(result.graph->attrs);
  for (auto& [key, text] : texts) {
    const auto before = printed.find(key);
    if (before != printed.end() && before->second == text) text = attributes.at(key);
  }
  result.graph->attrs.clear();
  return py::make_tuple(std::make_shared<GraphSource>(std::move(result.graph)), texts, params,
                        result.gone);
}

}  // namespace

PYBIND11_MODULE(_core, m) {
  m.doc() = "The native part of passlib; its public face is the package's Python.";
  py::register_exception_translator(&translate);
  addNodeTuple(&m);

  py::class_<OutputTable>(m, "OutputTable")
      .def(py::init([](std::unordered_map<std::string, int> fixed,
                       std::unordered_set<std::string> varying,
                       std::unordered_set<std::string> carrying) {
             return OutputTable{std::move(fixed), std::move(varying), std::move(carrying)};
           }),
           py::arg("fixed"), py::arg("varying"),
           py::arg("carrying") = std::unordered_set<std::string>());

  py::class_<GraphSource, std::shared_ptr<GraphSource>>(m, "Graph")
      .def_static("parse", &parseGraph, py::arg("text"), py::arg("lenient"), py::arg("ordered"))
      .def_static("build", &buildGraph, py::arg("nodes"), py::arg("heads"))
      .def("print", &printGraph, py::arg("pretty"), py::arg("attributes"))
      .def("check", [](GraphSource& source) { checkGraph(source.edit()); })
      .def("nodes", &listNodes)
      .def("heads",
           [](GraphSource& source) {
             const std::shared_ptr<const Graph> graph = source.get();
             return entryList(graph->outputs, NodeTable(graph->nodes));
           })
      .def(
          "variables",
          [](GraphSource& source, const AuxiliaryInputs& auxiliary, const NodeStates& own) {
            Variables variables = listVariables(*source.get(), auxiliary, own);
            return py::make_tuple(variables.args, variables.aux);
          },
          py::arg("auxiliary"), py::arg("own") = NodeStates())
      .def("operators", &countOperators)
      .def("uses", &listUses, py::arg("names"))
      .def("nodes_with", &listNodesWith, py::arg("operators"))
      .def("doubtful_outputs", &doubtfulOutputs, py::arg("table"))
      .def("set_outputs", &setOutputs)
      .def("set_node_attributes", &setNodeAttributes)
      .def("drop_node_attributes", &dropNodeAttributes)
      .def(
          "equals",
          [](GraphSource& left, GraphSource& right) {
            const std::shared_ptr<const Graph> a = left.get();
            const std::shared_ptr<const Graph> b = right.get();
            const py::gil_scoped_release released;
            return equalGraphs(*a, *b);
          },
          py::arg("other"))
      .def("attributes", [](GraphSource& s) { return printAttributes(s.attributes()); })
      .def(
          "copy",
          [](GraphSource& source) {
            return std::make_shared<GraphSource>(copyGraph(*source.get()));
          },
          py::call_guard<py::gil_scoped_release>())
      .def("__len__", [](GraphSource& source) { return source.get()->size(); });

  py::class_<Library, std::shared_ptr<Library>>(m, "Library")
      .def(py::init(&Library::open), py::arg("path"), py::arg("version"))
      .def_property_readonly("path", &Library::path)
      .def_property_readonly("abi_version", &Library::abiVersion)
      .def_property_readonly("passes",
                             [](const Library& library) {
                               std::vector<std::string> names;
                               for (const auto& pass : library.passes()) names.push_back(pass.name);
                               return names;
                             })
      .def_property_readonly("partitioners",
                             [](const Library& library) {
                               std::vector<std::pair<std::string, std::vector<std::string>>> list;
                               for (const auto& p : library.partitioners()) {
                                 list.emplace_back(p.name, std::vector<std::string>());
                                 for (const auto& strategy : p.strategies) {
                                   list.back().second.push_back(strategy.name);
                                 }
                               }
                               return list;
                             })
      .def_property_readonly("operators",
                             [](const Library& library) {
                               std::vector<std::string> names;
                               for (const auto& op : library.operators()) names.push_back(op.name);
                               return names;
                             })
      .def_property_readonly("shares_types", &Library::sharesTypes)
      .def_property_readonly("is_ours", &Library::isOurs);

  py::class_<CallSettings>(m, "CallSettings")
      .def(py::init(
               [](bool accept_args, bool accept_aux, bool force_json, bool consume, bool ordered) {
                 return CallSettings{accept_args, accept_aux, force_json, consume, ordered};
               }),
           py::kw_only(), py::arg("accept_args"), py::arg("accept_aux"), py::arg("force_json"),
           py::arg("consume"), py::arg("ordered"));

  bindOperators(&m);
  bindPartition(&m);

  m.def("parse_json", &parseJsonObjects, py::arg("text"), py::arg("number"), py::arg("comments"),
        py::arg("max_depth"));
  addJsonTypes(m);

  m.def("differing_arrays", &differingArrays, py::arg("pairs"));

  m.def("run_pass", &callPass, py::arg("library"), py::arg("index"), py::arg("graph"),
        py::arg("attributes"), py::arg("options"), py::arg("args"), py::arg("aux"),
        py::arg("settings"), py::arg("write"));
}

}  // namespace passlib
