// JSON texts as Python objects that remember where they stood.
#ifndef PASSLIB_JSON_OBJECTS_H_
#define PASSLIB_JSON_OBJECTS_H_

#include <pybind11/pybind11.h>

namespace passlib {

/// Adds to a module the classes JsonObject (a dict) and JsonArray (a list), whose attributes
/// `start` and `end` are the byte offsets of their first character and behind their last one.
void addJsonTypes(pybind11::module_& module);

/// Reads a JSON text into Python objects. `number` makes a value from the text of a number that
/// Python would spell differently. Throws JsonError.
pybind11::object parseJsonObjects(const pybind11::bytes& text, const pybind11::object& number,
                                  bool comments, std::size_t max_depth);

}  // namespace passlib

#endif  // PASSLIB_JSON_OBJECTS_H_
