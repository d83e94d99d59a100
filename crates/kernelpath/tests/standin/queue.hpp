// Streams. Work waits until somebody synchronises, so that a missing synchronisation shows: a copy to the host leaves NaN
// until then, and work of another stream, which no event orders, has not happened.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "report.hpp"

namespace standin {
struct Stream;
struct Item {
    std::string name;             // of the call that asked for it
    std::function<void()> work;   // or, if empty:
    Stream *other;                // wait until this stream
    uint64_t until;               // has done so much
};
struct Stream {
    int device = 0;
    bool follows_default = true;  // false: CU_STREAM_NON_BLOCKING
    bool live = true;
    std::deque<Item> items;
    uint64_t done = 0;            // items that are finished
    uint64_t end() const { return done + items.size(); }
};
struct Event {
    Stream *stream = nullptr;     // nullptr: never recorded
    uint64_t position = 0;
    bool live = true;
};

STANDIN_SHARED Stream *make_stream(int device, bool follows_default);
STANDIN_SHARED Event *make_event();
// The stream of a handle; a null handle is the default stream of the device. Faults on one that was destroyed or never made.
STANDIN_SHARED Stream &stream_of(const void *handle, int device);
STANDIN_SHARED Event &event_of(const void *handle);

STANDIN_SHARED void enqueue(Stream &stream, std::function<void()> work, const std::string &detail = "");
STANDIN_SHARED void wait_for(Stream &stream, Stream &other, uint64_t until);
STANDIN_SHARED void run(Stream &stream, uint64_t until);
inline void run(Stream &stream) { run(stream, stream.end()); }
// Everything on a device, its streams in an order that the seed gives.
STANDIN_SHARED void run_all(int device);
}  // namespace standin
