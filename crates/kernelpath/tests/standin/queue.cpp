#include "queue.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace standin {
static std::vector<Stream *> &streams = *new std::vector<Stream *>;
static std::set<const void *> &events = *new std::set<const void *>;
static std::map<int, Stream *> &defaults = *new std::map<int, Stream *>;

Stream *make_stream(int device, bool follows_default) {
    Stream *stream = new Stream;
    stream->device = device;
    stream->follows_default = follows_default;
    streams.push_back(stream);
    return stream;
}

Event *make_event() {
    Event *event = new Event;
    events.insert(event);
    return event;
}

// CU_STREAM_LEGACY is 1, CU_STREAM_PER_THREAD is 2.
Stream &stream_of(const void *handle, int device) {
    if (handle == (const void *)2) fault("the stand-in does not know the default stream of a thread");
    if (handle == nullptr || handle == (const void *)1) {
        Stream *&stream = defaults[device];
        if (!stream) stream = make_stream(device, true);
        return *stream;
    }
    if (std::find(streams.begin(), streams.end(), handle) == streams.end()) fault("%p is no stream", handle);
    Stream *stream = (Stream *)handle;
    if (!stream->live) fault("use of a stream that was destroyed");
    if (stream->device != device) fault("the stream is of device %d, and device %d is current", stream->device, device);
    return *stream;
}

Event &event_of(const void *handle) {
    if (!events.count(handle)) fault("%p is no event", handle);
    Event *event = (Event *)handle;
    if (!event->live) fault("use of an event that was destroyed");
    return *event;
}

void wait_for(Stream &stream, Stream &other, uint64_t until) {
    if (&stream != &other && until > other.done) stream.items.push_back({call_name(), nullptr, &other, until});
}

void enqueue(Stream &stream, std::function<void()> work, const std::string &detail) {
    // The default stream waits for all streams that follow it, and they for it.
    Stream *common = defaults.count(stream.device) ? defaults[stream.device] : nullptr;
    if (&stream == common) {
        for (Stream *other : streams)
            if (other->device == stream.device && other->follows_default) wait_for(stream, *other, other->end());
    } else if (common && stream.follows_default) wait_for(stream, *common, common->end());
    stream.items.push_back({call_name() + detail, std::move(work), nullptr, 0});
}

void run(Stream &stream, uint64_t until) {
    while (stream.done < until) {
        Item item = std::move(stream.items.front());
        stream.items.pop_front();
        ++stream.done;
        Call call(item.name + (item.work ? " (its work, done later)" : " (waiting)"));
        if (item.work) item.work();
        else run(*item.other, item.until);
    }
}

void run_all(int device) {
    std::vector<Stream *> mine;
    for (Stream *stream : streams)
        if (stream->device == device) mine.push_back(stream);
    for (size_t i = mine.size(); i > 1; --i) std::swap(mine[i - 1], mine[chance() % i]);
    for (Stream *stream : mine) run(*stream);
}
}  // namespace standin
