// The path under which sources written for MXNet include it.
#include "../lib_api.h"
