/* An OpenCL loader whose only device is a GPU without double precision. It answers for all that is asked before a device is
   opened, and has no other function: a program that went on would fail. */
#include <stddef.h>
#include <string.h>

typedef int status;
static int platform, device;

static status answer(const void *value, size_t bytes, size_t room, void *to, size_t *needed) {
    if (needed) *needed = bytes;
    if (to && room < bytes) return -30;
    if (to) memcpy(to, value, bytes);
    return 0;
}

status clGetPlatformIDs(unsigned room, void **platforms, unsigned *count) {
    if (platforms && room) platforms[0] = &platform;
    if (count) *count = 1;
    return 0;
}

status clGetPlatformInfo(void *of, unsigned what, size_t room, void *to, size_t *needed) {
    (void)of, (void)what;
    return answer("Pretended", 10, room, to, needed);
}

status clGetDeviceIDs(void *of, unsigned long kind, unsigned room, void **devices, unsigned *count) {
    (void)of, (void)kind;
    if (devices && room) devices[0] = &device;
    if (count) *count = 1;
    return 0;
}

status clGetDeviceInfo(void *of, unsigned what, size_t room, void *to, size_t *needed) {
    const unsigned long gpu = 4, memory = 1ul << 32, none = 0;
    void *its = &platform;
    (void)of;
    switch (what) {
        case 0x1000: return answer(&gpu, sizeof gpu, room, to, needed);
        case 0x1010: /* the largest allocation */
        case 0x101F: return answer(&memory, sizeof memory, room, to, needed);
        case 0x102B: return answer("A card for games", 17, room, to, needed);
        case 0x102D: return answer("1.0", 4, room, to, needed);
        case 0x1031: return answer(&its, sizeof its, room, to, needed);
        case 0x1032: return answer(&none, sizeof none, room, to, needed); /* CL_DEVICE_DOUBLE_FP_CONFIG */
        default: return -30;
    }
}
