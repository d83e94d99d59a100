// libcuda: modules, functions and launches.
#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "driver.hpp"
#include "fibres.hpp"

using namespace standin;

namespace {
struct Module {
    void *library;
    int device;
    State *state;
    Shared shared;
    bool live;
};
struct Function {
    std::string name;
    Module *module;
    const Entry *entry;
};
std::map<const void *, Module *> &modules = *new std::map<const void *, Module *>;
std::map<std::string, State *> &states = *new std::map<std::string, State *>;
std::map<const void *, Function *> &functions = *new std::map<const void *, Function *>;

Module &module_of(CUmodule handle) {
    auto it = modules.find(handle);
    if (it == modules.end()) fault("%p is no module", (void *)handle);
    if (!it->second->live) fault("use of a module that was unloaded");
    return *it->second;
}
Function &function_of(CUfunction handle) {
    auto it = functions.find(handle);
    if (it == functions.end()) fault("%p is no function", (void *)handle);
    if (!it->second->module->live) fault("%s is of a module that was unloaded", it->second->name.c_str());
    if (it->second->module->device != current_context()->device) fault("%s was loaded on another device", it->second->name.c_str());
    return *it->second;
}

// Reads memory that may not be there.
bool peek(const void *from, void *to, size_t bytes) {
    iovec local = {to, bytes}, remote = {(void *)from, bytes};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

struct Arguments {
    std::vector<std::vector<unsigned long long>> values;  // each aligned to 8 bytes
    std::vector<bool> is_pointer;
};

// The arguments as they are at the call. CUDA's API tells neither their number nor their sizes: the text does.
Arguments read_arguments(const Function &function, void **slots) {
    const Entry &entry = *function.entry;
    Arguments arguments;
    for (unsigned i = 0; i < entry.count; ++i) {
        const Parameter &parameter = entry.parameters[i];
        char what[200];
        snprintf(what, sizeof what, "argument %u (of %u) of %s", i + 1, entry.count, function.name.c_str());
        void *slot = nullptr;
        std::vector<unsigned long long> value((parameter.size + 7) / 8);
        if (!peek(slots + i, &slot, sizeof slot) || !peek(slot, value.data(), parameter.size))
            fault("%s cannot be read: are there too few?", what);
        unsigned long long whole = 0;
        if (parameter.pointee) {
            if (!value[0]) fault("%s is a null pointer", what);
            check(value[0], parameter.pointee, what);
            if (value[0] % parameter.alignment) fault("%s is %#llx, which is not aligned to %u bytes", what, value[0], parameter.alignment);
        } else if (parameter.size <= 8 && peek(slot, &whole, sizeof whole) && is_start(whole))
            fault("%s is the address of an allocation, and the kernel takes a number there", what);
        arguments.values.push_back(std::move(value));
        arguments.is_pointer.push_back(parameter.pointee != 0);
    }
    return arguments;
}

void run_now(Function &function, Arguments arguments, Dim grid, Dim block) {
    std::vector<void *> slots;
    std::vector<Address> pointers;
    for (size_t i = 0; i < arguments.values.size(); ++i) {
        auto &value = arguments.values[i];
        if (arguments.is_pointer[i]) {
            char what[200];
            snprintf(what, sizeof what, "argument %zu of %s", i + 1, function.name.c_str());
            pointers.push_back(value[0]);
            value[0] = (Address)(uintptr_t)host(value[0], function.entry->parameters[i].pointee, what);
        }
        slots.push_back(value.data());
    }
    launch(*function.entry, *function.module->state, function.module->shared, grid, block, slots.data());
    for (Address pointer : pointers) check_margins(pointer);
}
}  // namespace

// The stand-in's NVRTC makes three lines: a mark, the architecture, the path of a shared library.
CUresult cuModuleLoadData(CUmodule *handle, const void *image) {
    CALL;
    CURRENT;
    const char *text = (const char *)image, *mark = "//stand-in\n";
    if (strncmp(text, mark, strlen(mark))) REFUSE(CUDA_ERROR_INVALID_IMAGE, "the image is not from the stand-in's NVRTC");
    int architecture = 0;
    char path[4096];
    if (sscanf(text + strlen(mark), "//%d\n//%4095[^\n]", &architecture, path) != 2) REFUSE(CUDA_ERROR_INVALID_IMAGE, "the image is damaged");
    int capability = (int)setting("STANDIN_CAPABILITY", 89);
    if (architecture > capability) REFUSE(CUDA_ERROR_INVALID_PTX, "the text was compiled for %d, and the device is %d", architecture, capability);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) REFUSE(CUDA_ERROR_INVALID_IMAGE, "%s", dlerror());
    auto bind = (Shared(*)(State *))dlsym(library, "standin_bind");
    if (!bind) REFUSE(CUDA_ERROR_INVALID_IMAGE, "%s is no module", path);
    // Two loads of one text share its State: launches come one after the other.
    State *state = states.insert({path, new State{{}, {}, {}, {}, wait_at_barrier, broken_rule}}).first->second;
    Module *module = new Module{library, current_context()->device, state, bind(state), true};
    modules[module] = module;
    *handle = (CUmodule)module;
    return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule handle) {
    CALL;
    CURRENT;
    Module &module = module_of(handle);
    run_all(module.device);
    module.live = false;
    return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction *handle, CUmodule module_handle, const char *name) {
    CALL;
    CURRENT;
    Module &module = module_of(module_handle);
    auto entry = (const Entry *)dlsym(module.library, (std::string("standin_entry_") + name).c_str());
    if (!entry) REFUSE(CUDA_ERROR_NOT_FOUND, "the module has no kernel %s", name);
    Function *function = new Function{name, &module, entry};
    functions[function] = function;
    *handle = (CUfunction)function;
    return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction handle) {
    CALL;
    CURRENT;
    Function &function = function_of(handle);
    if (which != CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) fault("attribute %d is not known to the stand-in", (int)which);
    *value = (int)function.entry->most_threads;
    return CUDA_SUCCESS;
}
// A launcher may ask for the sizes, and compare its arguments with them.
CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *size) {
    CALL;
    CURRENT;
    const Entry &entry = *function_of(handle).entry;
    if (index >= entry.count) return CUDA_ERROR_INVALID_VALUE;
    size_t at = 0;
    for (size_t i = 0; i <= index; ++i) {
        const Parameter &parameter = entry.parameters[i];
        size_t alignment = parameter.pointee ? 8 : parameter.alignment;
        at = (at + alignment - 1) / alignment * alignment;
        if (i < index) at += parameter.size;
    }
    *offset = at;
    if (size) *size = entry.parameters[index].size;
    return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared_bytes, CUstream stream, void **slots, void **extra) {
    CALL;
    CURRENT;
    Function &function = function_of(handle);
    const char *name = function.name.c_str();
    if (!gx || !gy || !gz || gx > 0x7fffffffu || gy > 65535 || gz > 65535)
        REFUSE(CUDA_ERROR_INVALID_VALUE, "%s: a grid of %u x %u x %u", name, gx, gy, gz);
    unsigned long long threads = (unsigned long long)bx * by * bz;
    if (!threads || bx > 1024 || by > 1024 || bz > 64 || threads > 1024)
        REFUSE(CUDA_ERROR_INVALID_VALUE, "%s: a block of %u x %u x %u", name, bx, by, bz);
    if (threads > function.entry->most_threads)
        REFUSE(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "%s: %llu threads, and its __launch_bounds__ are %u", name, threads, function.entry->most_threads);
    if (shared_bytes) fault("%s: shared memory whose size comes with the launch is not known to the stand-in", name);
    if (extra) fault("%s: arguments in `extra` are not known to the stand-in", name);
    if (!slots && function.entry->count) fault("%s: takes %u arguments, and there are none", name, function.entry->count);
    Arguments arguments = read_arguments(function, slots);
    enqueue(stream_here(stream),
            [&function, arguments = std::move(arguments), grid = Dim{gx, gy, gz}, block = Dim{bx, by, bz}] { run_now(function, arguments, grid, block); },
            std::string("(") + name + ")");
    return CUDA_SUCCESS;
}
