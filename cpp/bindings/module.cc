// The module passlib._core.

#include "bindings/bindings.h"
#include "bindings/weights/lending.h"
#include "bindings/weights/scaled_array.h"

PYBIND11_MODULE(_core, m) {
  m.doc() = "The native part of passlib; its public face is the package's Python.";
  passlib::bindErrors();
  passlib::bindExitGate(&m);
  passlib::bindGraphs(&m);
  passlib::bindEditing(&m);
  passlib::bindRules(&m);
  passlib::bindEdits(&m);
  passlib::bindSteps(&m);
  passlib::bindLibraries(&m);
  passlib::bindLending(&m);
  passlib::bindScaledArrays(&m);
  passlib::bindOperators(&m);
  passlib::bindPartition(&m);
  passlib::bindOnnx(&m);
  passlib::bindOnnxWriter(&m);
  passlib::bindDataFiles(&m);
  passlib::bindFacts(&m);
  passlib::bindJson(&m);
  passlib::bindArrays(&m);
}
