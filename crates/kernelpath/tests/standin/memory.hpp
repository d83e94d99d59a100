// Device memory. Its addresses have bit 62 set, so that the host cannot follow them; its bytes start as NaN; pages that
// nobody may touch lie before and behind each allocation; no address is ever used twice.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "report.hpp"

namespace standin {
typedef unsigned long long Address;
constexpr Address FAR = 1ull << 62;
// Every byte of fresh memory: NaN in either precision, and a number that nobody computes.
constexpr int FRESH = 0xff;

inline bool is_far(const void *p) { return (Address)(uintptr_t)p & FAR; }

STANDIN_SHARED size_t memory_of_device();
STANDIN_SHARED size_t memory_in_use(int device);

// An address of `bytes` bytes, or 0 where the device has no room.
STANDIN_SHARED Address allocate(int device, size_t bytes);
// Says that a free waits in a stream: from now on no call may name this memory.
STANDIN_SHARED void condemn(Address address);
STANDIN_SHARED void release(Address address);
// What a context still held when its last owner let it go; it counts as leaked.
STANDIN_SHARED void release_all(int device);

// Faults unless all of [address, address + bytes) is of one allocation that is live and not condemned.
STANDIN_SHARED void check(Address address, size_t bytes, const char *what);
// The same at the time when the work is done; returns where the bytes are. Only kernels and copies may use it.
STANDIN_SHARED char *host(Address address, size_t bytes, const char *what);
// Faults where something was written beside the allocation that holds `address`.
STANDIN_SHARED void check_margins(Address address);
// Whether this is the first byte of a live allocation.
STANDIN_SHARED bool is_start(Address address);
// "byte 8 behind allocation 3 of 800 bytes".
STANDIN_SHARED std::string describe(const void *host_address);
}  // namespace standin
