#include "report.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <set>

namespace standin {
std::recursive_mutex everything;
static std::string current = "(no call)";

static void log_name(const std::string &name) {
    static const char *path = getenv("STANDIN_LOG");
    static std::set<std::string> *names = new std::set<std::string>;
    if (!path || name.find('(') != std::string::npos || !names->insert(name).second) return;
    if (FILE *file = fopen(path, "a")) {
        fprintf(file, "%s\n", name.c_str());
        fclose(file);
    }
}

Call::Call(std::string name) : before(current) {
    log_name(name);
    current = std::move(name);
}
Call::~Call() { current = before; }
const std::string &call_name() { return current; }

static void say(const char *kind, const char *format, va_list list) {
    char text[800];
    vsnprintf(text, sizeof text, format, list);
    fprintf(stderr, "stand-in: %s%s: %s\n", kind, current.c_str(), text);
    fflush(stderr);
}
void fault(const char *format, ...) {
    va_list list;
    va_start(list, format);
    say("fault in ", format, list);
    abort();
}
void note(const char *format, ...) {
    va_list list;
    va_start(list, format);
    say("", format, list);
    va_end(list);
}

unsigned long long setting(const char *name, unsigned long long otherwise) {
    const char *value = getenv(name);
    return value && *value ? strtoull(value, nullptr, 0) : otherwise;
}

unsigned long long chance() {
    static unsigned long long state = 88172645463325252ull ^ (setting("STANDIN_SEED", 0) * 0x9e3779b97f4a7c15ull);
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}
}  // namespace standin
