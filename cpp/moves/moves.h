// Standard passes that move, merge and cancel operators.
#ifndef PASSLIB_MOVES_MOVES_H_
#define PASSLIB_MOVES_MOVES_H_

#include "moves/model.h"

namespace passlib::moves {

/// Merges successive multiplications by constants, and successive additions of constants.
void mergeFactors(Model* model);

/// Merges successive operators that keep the order of the elements and change the shape.
void mergeReshapes(Model* model);

}  // namespace passlib::moves

#endif  // PASSLIB_MOVES_MOVES_H_
