// libcuda: devices, contexts, memory, copies, streams and events.
#include "driver.hpp"

#include <unistd.h>

#include <cstring>
#include <map>
#include <vector>

using namespace standin;

namespace standin {
Stream &stream_here(CUstream handle) { return stream_of(handle, current_context()->device); }
}  // namespace standin

static bool started;
// A child that is forked after cuInit cannot use CUDA.
static pid_t process;
static std::map<int, Context> &contexts = *new std::map<int, Context>;
// Memory of the host that the driver made: copies to and from it do not happen before their turn.
static std::map<const char *, size_t> &pinned = *new std::map<const char *, size_t>;

static bool is_pinned(const void *p) {
    auto it = pinned.upper_bound((const char *)p);
    return it != pinned.begin() && (--it, (const char *)p < it->first + it->second);
}

// --- Start, devices, contexts

CUresult cuInit(unsigned) {
    CALL;
    if (device_count() == 0) return CUDA_ERROR_NO_DEVICE;
    if (started && process != getpid()) REFUSE(CUDA_ERROR_NOT_INITIALIZED, "this process was forked from one that uses CUDA");
    started = true;
    process = getpid();
    return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int *version) {
    CALL;
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}
#define STARTED if (!started || process != getpid()) REFUSE(CUDA_ERROR_NOT_INITIALIZED, "cuInit was not called in this process, or it failed")
#define DEVICE(device) STARTED; if (device < 0 || device >= device_count()) REFUSE(CUDA_ERROR_INVALID_DEVICE, "there is no device %d", device)
CUresult cuDeviceGetCount(int *count) {
    CALL;
    STARTED;
    *count = device_count();
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    CALL;
    DEVICE(ordinal);
    *device = ordinal;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char *name, int room, CUdevice device) {
    CALL;
    DEVICE(device);
    snprintf(name, room, "stand-in %d", device);
    return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
    CALL;
    DEVICE(device);
    *bytes = memory_of_device();
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    CALL;
    DEVICE(device);
    memset(uuid, device + 1, sizeof *uuid);
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device) {
    CALL;
    DEVICE(device);
    int capability = (int)setting("STANDIN_CAPABILITY", 89);
    switch (which) {
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = capability / 10; break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = capability % 10; break;
        case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: *value = setting("STANDIN_POOLS", 1) != 0; break;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X: case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: *value = 1024; break;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *value = 64; break;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = 0x7fffffff; break;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y: case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *value = 65535; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 49152; break;
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK: *value = 65536; break;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 142; break;
        case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: *value = 64; break;
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: *value = 1; break;
        case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY: case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS: *value = 0; break;
        case CU_DEVICE_ATTRIBUTE_INTEGRATED: case CU_DEVICE_ATTRIBUTE_ECC_ENABLED: *value = 0; break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE: *value = CU_COMPUTEMODE_DEFAULT; break;
        default: fault("attribute %d is not known to the stand-in: add its value to driver.cpp", (int)which);
    }
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    CALL;
    DEVICE(device);
    Context &its = contexts[device];
    its.device = device;
    ++its.owners;
    *context = (CUcontext)&its;
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    CALL;
    DEVICE(device);
    Context &its = contexts[device];
    if (its.owners == 0) fault("the context of device %d has no owner", device);
    if (--its.owners == 0) {
        run_all(device);
        release_all(device);
    }
    return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
    CALL;
    STARTED;
    for (auto &entry : contexts)
        if ((CUcontext)&entry.second == context && entry.second.owners == 0) fault("the context was released");
    make_current((Context *)context);
    return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext *context) {
    CALL;
    STARTED;
    *context = (CUcontext)current_context();
    return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice *device) {
    CALL;
    CURRENT;
    *device = current_context()->device;
    return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() {
    CALL;
    CURRENT;
    run_all(current_context()->device);
    return CUDA_SUCCESS;
}

// --- Memory

static CUresult make(CUdeviceptr *address, size_t bytes) {
    if (bytes == 0) REFUSE(CUDA_ERROR_INVALID_VALUE, "an allocation of 0 bytes");
    int device = current_context()->device;
    *address = allocate(device, bytes);
    if (*address) return CUDA_SUCCESS;
    REFUSE(CUDA_ERROR_OUT_OF_MEMORY, "%zu bytes asked for, %zu of %zu in use", bytes, memory_in_use(device), memory_of_device());
}
// Frees that wait in streams come first where the device is full.
static void make_room(size_t bytes) {
    int device = current_context()->device;
    size_t all = memory_of_device(), used = memory_in_use(device);
    if (bytes > all || used > all - bytes) run_all(device);
}
CUresult cuMemGetInfo(size_t *available, size_t *total) {
    CALL;
    CURRENT;
    *total = memory_of_device();
    *available = *total - std::min(*total, memory_in_use(current_context()->device));
    return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
    CALL;
    CURRENT;
    make_room(bytes);
    return make(address, bytes);
}
CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
    CALL;
    CURRENT;
    stream_here(stream);
    make_room(bytes);
    return make(address, bytes);
}
CUresult cuMemFree(CUdeviceptr address) {
    CALL;
    CURRENT;
    run_all(current_context()->device);
    release(address);
    return CUDA_SUCCESS;
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    CALL;
    CURRENT;
    Stream &its = stream_here(stream);
    condemn(address);
    enqueue(its, [=] { release(address); });
    return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void **host_memory, size_t bytes, unsigned) {
    CALL;
    CURRENT;
    *host_memory = malloc(bytes);
    if (!*host_memory) return CUDA_ERROR_OUT_OF_MEMORY;
    memset(*host_memory, FRESH, bytes);
    pinned[(const char *)*host_memory] = bytes;
    return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void *host_memory) {
    CALL;
    CURRENT;
    auto it = pinned.find((const char *)host_memory);
    if (it == pinned.end()) fault("%p is no pinned memory of the host", host_memory);
    run_all(current_context()->device);
    pinned.erase(it);
    free(host_memory);
    return CUDA_SUCCESS;
}

// --- Copies

static void check_host(const void *p, const char *what) {
    if (is_far(p)) fault("%s is %p, an address of the device", what, p);
    if (!p) fault("%s is a null pointer", what);
}
static void upload(Stream &stream, CUdeviceptr to, const void *from, size_t bytes) {
    check_host(from, "the source");
    check(to, bytes, "the destination");
    if (is_pinned(from)) return enqueue(stream, [=] { memcpy(host(to, bytes, "the destination"), from, bytes); });
    // The driver takes a copy of ordinary memory before it returns.
    std::vector<char> copy((const char *)from, (const char *)from + bytes);
    enqueue(stream, [=, copy = std::move(copy)] { memcpy(host(to, bytes, "the destination"), copy.data(), bytes); });
}
static void download(Stream &stream, void *to, CUdeviceptr from, size_t bytes) {
    check_host(to, "the destination");
    check(from, bytes, "the source");
    // Whoever reads it before a synchronisation shall see it.
    memset(to, FRESH, bytes);
    enqueue(stream, [=] { memcpy(to, host(from, bytes, "the source"), bytes); });
}
static void copy(Stream &stream, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    check(to, bytes, "the destination");
    check(from, bytes, "the source");
    if (to < from + bytes && from < to + bytes) fault("source and destination overlap");
    enqueue(stream, [=] { memcpy(host(to, bytes, "the destination"), host(from, bytes, "the source"), bytes); });
}
static void fill(Stream &stream, CUdeviceptr to, std::vector<char> pattern, size_t times) {
    size_t bytes = pattern.size() * times;
    check(to, bytes, "the destination");
    if (to % pattern.size()) fault("the destination is not aligned to %zu bytes", pattern.size());
    enqueue(stream, [=] {
        char *at = host(to, bytes, "the destination");
        for (size_t i = 0; i < bytes; ++i) at[i] = pattern[i % pattern.size()];
    });
}
static std::vector<char> bytes_of(unsigned value, size_t bytes) { return {(char *)&value, (char *)&value + bytes}; }

// The calls without a stream use the default one, and wait.
#define NOW(what) CALL; CURRENT; if (n == 0) return CUDA_SUCCESS; Stream &stream = stream_here(nullptr); what; run(stream); return CUDA_SUCCESS
#define LATER(what) CALL; CURRENT; Stream &stream = stream_here(s); if (n == 0) return CUDA_SUCCESS; what; return CUDA_SUCCESS
CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t n) { NOW(upload(stream, to, from, n)); }
CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t n) { NOW(download(stream, to, from, n)); }
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t n) { NOW(copy(stream, to, from, n)); }
CUresult cuMemsetD8(CUdeviceptr to, unsigned char v, size_t n) { NOW(fill(stream, to, bytes_of(v, 1), n)); }
CUresult cuMemsetD32(CUdeviceptr to, unsigned v, size_t n) { NOW(fill(stream, to, bytes_of(v, 4), n)); }
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t n, CUstream s) { LATER(upload(stream, to, from, n)); }
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t n, CUstream s) { LATER(download(stream, to, from, n)); }
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) { LATER(copy(stream, to, from, n)); }
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char v, size_t n, CUstream s) { LATER(fill(stream, to, bytes_of(v, 1), n)); }
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned v, size_t n, CUstream s) { LATER(fill(stream, to, bytes_of(v, 4), n)); }

// --- Streams and events

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    CALL;
    CURRENT;
    *stream = (CUstream)make_stream(current_context()->device, !(flags & CU_STREAM_NON_BLOCKING));
    return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream stream) {
    CALL;
    CURRENT;
    if (!stream) fault("the default stream cannot be destroyed");
    stream_here(stream).live = false;
    return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) {
    CALL;
    CURRENT;
    run(stream_here(stream));
    return CUDA_SUCCESS;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned) {
    CALL;
    CURRENT;
    Event &event = event_of(handle);
    if (event.stream) wait_for(stream_here(stream), *event.stream, event.position);
    return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent *event, unsigned) {
    CALL;
    CURRENT;
    *event = (CUevent)make_event();
    return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent handle, CUstream stream) {
    CALL;
    CURRENT;
    Event &event = event_of(handle);
    event.stream = &stream_here(stream);
    event.position = event.stream->end();
    return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent handle) {
    CALL;
    CURRENT;
    Event &event = event_of(handle);
    if (event.stream) run(*event.stream, event.position);
    return CUDA_SUCCESS;
}
// Who asks repeatedly sees one piece of work done at each call.
CUresult cuEventQuery(CUevent handle) {
    CALL;
    CURRENT;
    Event &event = event_of(handle);
    if (!event.stream || event.stream->done >= event.position) return CUDA_SUCCESS;
    run(*event.stream, event.stream->done + 1);
    return CUDA_ERROR_NOT_READY;
}
CUresult cuEventDestroy(CUevent handle) {
    CALL;
    CURRENT;
    event_of(handle).live = false;
    return CUDA_SUCCESS;
}

// --- Errors

// The real NVRTC asks for it where it finds a libcuda.
CUresult cuGetExportTable(const void **table, const CUuuid *) {
    CALL;
    *table = nullptr;
    return CUDA_ERROR_NOT_FOUND;
}
static const struct {
    CUresult code;
    const char *name, *text;
} ERRORS[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
};
CUresult cuGetErrorName(CUresult code, const char **name) {
    CALL;
    for (auto &error : ERRORS)
        if (error.code == code) return (*name = error.name, CUDA_SUCCESS);
    *name = nullptr;
    return CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult code, const char **text) {
    CALL;
    for (auto &error : ERRORS)
        if (error.code == code) return (*text = error.text, CUDA_SUCCESS);
    *text = nullptr;
    return CUDA_ERROR_INVALID_VALUE;
}
