// NVIDIA's header, whose prototypes the stand-in's functions must match, and what the files of libcuda share.
#pragma once
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "context.hpp"

namespace standin {
Stream &stream_here(CUstream handle);
}

#define CURRENT \
    if (!standin::current_context()) REFUSE(CUDA_ERROR_INVALID_CONTEXT, "no context is current in this thread")
