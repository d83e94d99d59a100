// Contexts: which device the calls of a thread mean.
#pragma once
#include "memory.hpp"
#include "queue.hpp"

namespace standin {
constexpr int MOST_DEVICES = 16;
struct Context {
    int device, owners;
};
// The context that is current in this thread, or null.
STANDIN_SHARED Context *current_context();
STANDIN_SHARED void make_current(Context *context);
STANDIN_SHARED int device_count();

// The number of a handle of a library (cuBLAS, cuSOLVER): made, used, destroyed.
struct Handle {
    const char *library;
    int device;
    Stream *stream;
    bool live;
};
STANDIN_SHARED Handle *make_handle(const char *library);
// Faults on a handle that was destroyed, is of another library or of another device.
STANDIN_SHARED Handle &handle_of(const void *handle, const char *library);
}  // namespace standin
