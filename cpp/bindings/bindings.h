// The parts of the module passlib._core. Each function adds the classes and functions of one
// subject; a class must be added before functions whose signatures use it.
#ifndef PASSLIB_BINDINGS_BINDINGS_H_
#define PASSLIB_BINDINGS_BINDINGS_H_

#include <pybind11/pybind11.h>

#include <memory>

#include "graph/source.h"

namespace passlib {

using GraphClass = pybind11::class_<GraphSource, std::shared_ptr<GraphSource>>;

/// Translates the host's exceptions to those of passlib.errors.
void bindErrors();

/// Adds Graph, its queries and OperatorTable.
void bindGraphs(pybind11::module_* m);

/// Adds NodeTuple, and to Graph its conversion to and from lists of nodes.
void bindNodes(pybind11::module_* m, GraphClass* graphs);

/// Adds OperatorTable, and to Graph questions about some of its nodes and changes to them.
void bindQueries(pybind11::module_* m, GraphClass* graphs);

/// Adds EditableGraph and the classes of its nodes, values and attributes. Needs Graph.
void bindEditing(pybind11::module_* m);

/// Adds read_steps, print_step and print_list.
void bindSteps(pybind11::module_* m);

/// Adds Library, CallSettings and run_pass. Needs Graph.
void bindLibraries(pybind11::module_* m);

/// Adds CustomOp, OperatorState, ComputeSettings and seed_random. Needs Library.
void bindOperators(pybind11::module_* m);

/// Adds PartitionSettings and run_partitioner. Needs Graph and Library.
void bindPartition(pybind11::module_* m);

/// Adds close_gate and ForeignCall.
void bindExitGate(pybind11::module_* m);

/// Adds JsonObject, JsonArray and parse_json.
void bindJson(pybind11::module_* m);

/// Adds OnnxFile, and functions on files of ONNX. Needs Graph.
void bindOnnx(pybind11::module_* m);

/// Adds OnnxWriter and onnx_output_names. Needs OnnxFile.
void bindOnnxWriter(pybind11::module_* m);

/// Adds PlacedModel, and functions on the data files of models. Needs FileMapping.
void bindDataFiles(pybind11::module_* m);

/// Adds GraphFacts. Needs OnnxFile.
void bindFacts(pybind11::module_* m);

/// Adds RuleBook and rule_functions.
void bindRules(pybind11::module_* m);

/// Adds Edit, Dim, EditedFacts, StandardPasses and the table of kernels. Needs EditableGraph and
/// RuleBook.
void bindEdits(pybind11::module_* m);

/// Adds differing_arrays and same_arrays.
void bindArrays(pybind11::module_* m);

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_BINDINGS_H_
