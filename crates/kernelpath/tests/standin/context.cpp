#include "context.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>

namespace standin {
static thread_local Context *current;
static thread_local pid_t process;  // that made it current: a forked child has none
static std::set<const void *> &handles = *new std::set<const void *>;

Context *current_context() { return current && current->owners > 0 && process == getpid() ? current : nullptr; }
void make_current(Context *context) {
    current = context;
    process = getpid();
}
int device_count() { return std::min<int>(MOST_DEVICES, setting("STANDIN_DEVICES", 1)); }

Handle *make_handle(const char *library) {
    Context *context = current_context();
    Handle *handle = new Handle{library, context->device, &stream_of(nullptr, context->device), true};
    handles.insert(handle);
    return handle;
}

Handle &handle_of(const void *pointer, const char *library) {
    if (!handles.count(pointer)) fault("%p is no handle", pointer);
    Handle &handle = *(Handle *)pointer;
    if (std::string(handle.library) != library) fault("the handle is one of %s", handle.library);
    if (!handle.live) fault("use of a handle that was destroyed");
    Context *context = current_context();
    if (context && context->device != handle.device) fault("the handle is of device %d, and device %d is current", handle.device, context->device);
    return handle;
}
}  // namespace standin
