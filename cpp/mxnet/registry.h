// MXNet's registry of operators, which CMake puts into the program.
#ifndef PASSLIB_MXNET_REGISTRY_H_
#define PASSLIB_MXNET_REGISTRY_H_

namespace passlib::symbols {

/// The content of python/passlib/mxnet/schema/operators.json.
extern const char* const kRegistry;
/// The content of inputs.json in the same folder.
extern const char* const kInputs;

}  // namespace passlib::symbols

#endif  // PASSLIB_MXNET_REGISTRY_H_
