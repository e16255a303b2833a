// JSON texts as Python objects that remember where they stood.
#ifndef PASSLIB_JSON_OBJECTS_H_
#define PASSLIB_JSON_OBJECTS_H_

#include <pybind11/pybind11.h>

namespace passlib {

/// Reads a JSON text into Python objects. `types` is a module with the classes JsonObject (a dict),
/// JsonArray (a list), both with attributes `start` and `end` for the byte offsets of their braces,
/// and JsonNumber, made from the text of a number that Python would spell differently. Throws
/// JsonError.
pybind11::object parseJsonObjects(const pybind11::bytes& text, const pybind11::object& types,
                                  bool comments, std::size_t max_depth);

}  // namespace passlib

#endif  // PASSLIB_JSON_OBJECTS_H_
