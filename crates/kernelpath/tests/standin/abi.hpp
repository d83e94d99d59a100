// What a compiled CUDA text and the driver know of each other.
#pragma once

namespace standin {
struct Dim {
    unsigned x, y, z;
};
// One parameter of a kernel.
struct Parameter {
    unsigned size, pointee, alignment;  // bytes; pointee is 0 unless it is a pointer, alignment is that of the pointee
};
struct Entry {
    void (*call)(void **arguments);
    unsigned most_threads;  // __launch_bounds__, or 1024
    unsigned count;
    const Parameter *parameters;
};
// The threads of a launch read it, and the driver writes it.
struct State {
    Dim thread, block, block_size, grid;
    void (*wait)(int barrier, int line);
    void (*broken)(const char *what, const char *file, unsigned line);
};
// The shared memory of all kernels of a text.
struct Shared {
    char *begin, *end;
};
}  // namespace standin
