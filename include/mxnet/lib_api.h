// The include path used by sources written for MXNet.
#include "../lib_api.h"
