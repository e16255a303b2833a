// Facts about arrays of Python.
#ifndef PASSLIB_BINDINGS_ARRAY_FACTS_H_
#define PASSLIB_BINDINGS_ARRAY_FACTS_H_

#include <pybind11/pybind11.h>

#include "facts/file_facts.h"

namespace passlib {

/// The facts of the variables of a graph that have arrays.
facts::FileFacts::Known arrayFacts(const Graph& graph, const pybind11::dict& params);

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_ARRAY_FACTS_H_
