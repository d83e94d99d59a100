// What the stand-in tells: faults of the caller end the process, refusals are a status that a real driver returns too.
#pragma once
#include <mutex>
#include <string>

#define STANDIN_SHARED __attribute__((visibility("default")))

namespace standin {
// One lock for everything: calls of several threads come one after the other.
STANDIN_SHARED extern std::recursive_mutex everything;

// While it lives, reports name this call; `STANDIN_LOG` collects the names of all calls.
struct STANDIN_SHARED Call {
    explicit Call(std::string name);
    Call(const Call &) = delete;
    ~Call();
    std::lock_guard<std::recursive_mutex> held{everything};
    std::string before;
};
// The name of the call that reports would name now.
STANDIN_SHARED const std::string &call_name();

// A bug of the caller: says which call and what, then aborts.
[[noreturn]] STANDIN_SHARED void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
// An error that a real driver returns: says it on stderr too.
STANDIN_SHARED void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

// A number from the environment.
STANDIN_SHARED unsigned long long setting(const char *name, unsigned long long otherwise);

// One of the pseudorandom numbers that STANDIN_SEED starts (xorshift).
STANDIN_SHARED unsigned long long chance();
}  // namespace standin

// The first line of every function of an API.
#define CALL standin::Call call_(__func__)
#define REFUSE(status, ...) return (standin::note(__VA_ARGS__), status)
