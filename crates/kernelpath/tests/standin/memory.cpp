#include "context.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace standin {
namespace {
constexpr size_t PAGE = 4096, ALIGNMENT = 16;
// Address space, not memory: it is never given back, so no address comes twice.
constexpr size_t ARENA = size_t(1) << 44;

struct Piece {
    size_t bytes, number;
    int device;
    bool live, condemned;
    char *pages;   // the accessible ones
    size_t room;   // their bytes
};
// Freed pieces stay in the table, so that a late use is named.
std::map<Address, Piece> &pieces = *new std::map<Address, Piece>;
std::map<int, size_t> &in_use = *new std::map<int, size_t>;
size_t made, leaked;
char *next;
int owner;  // the process that allocates; its forked children report no leaks

char *far_to_host(Address address) { return (char *)(address & ~FAR); }

void clear_margins(Address start, const Piece &piece, bool check) {
    const char *first = far_to_host(start), *end = first + piece.bytes;
    for (const char *p = piece.pages; p < piece.pages + piece.room; ++p) {
        if (p == first) p = end;
        if (p == piece.pages + piece.room) break;
        if (check && (unsigned char)*p != FRESH)
            fault("something was written at byte %zd %s allocation %zu of %zu bytes", p < first ? first - p : p - end + 1,
                  p < first ? "before" : "behind", piece.number, piece.bytes);
    }
}

// The piece whose bytes, or whose margin, hold the address.
std::map<Address, Piece>::iterator find(Address address) {
    auto it = pieces.upper_bound(address);
    return it == pieces.begin() ? pieces.end() : --it;
}

Piece &start_of(Address address, const char *what) {
    auto it = pieces.find(address);
    if (it == pieces.end()) {
        auto near = find(address);
        if ((address & FAR) && near != pieces.end() && address < near->first + near->second.bytes)
            fault("%s of %#llx, which is %llu bytes inside allocation %zu", what, address, address - near->first, near->second.number);
        fault("%s of %#llx, which is no device address", what, address);
    }
    if (!it->second.live || it->second.condemned) fault("double free of allocation %zu of %zu bytes", it->second.number, it->second.bytes);
    return it->second;
}

void drop(Address address, Piece &piece) {
    clear_margins(address, piece, true);
    mmap(piece.pages, piece.room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    in_use[piece.device] -= piece.bytes;
    piece.live = false;
}

// At the end of the process, the last word on leaks.
struct AtExit {
    ~AtExit() {
        if (owner != getpid() || !setting("STANDIN_LEAKS", 0)) return;
        size_t live = leaked;
        for (auto &entry : pieces) {
            if (!entry.second.live) continue;
            fprintf(stderr, "stand-in: leaked allocation %zu of %zu bytes\n", entry.second.number, entry.second.bytes);
            ++live;
        }
        fprintf(stderr, "stand-in: %zu of %zu allocations leaked\n", live, made);
        fflush(nullptr);
        if (live) _exit(77);
    }
} at_exit;
}  // namespace

size_t memory_of_device() { return setting("STANDIN_MEMORY", 8ull << 30); }
size_t memory_in_use(int device) { return in_use[device]; }

Address allocate(int device, size_t bytes) {
    owner = getpid();
    ++made;
    if (made == setting("STANDIN_FAIL_ALLOCATION", 0)) {
        note("allocation %zu of %zu bytes fails, as STANDIN_FAIL_ALLOCATION asks", made, bytes);
        return 0;
    }
    size_t all = memory_of_device();
    if (bytes > all || in_use[device] > all - bytes) return 0;
    if (!next) {
        next = (char *)mmap(nullptr, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (next == MAP_FAILED) fault("cannot reserve 16 TB of address space for the device");
    }
    size_t aligned = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, room = (aligned + PAGE - 1) / PAGE * PAGE;
    char *pages = next + PAGE;
    if (mprotect(pages, room, PROT_READ | PROT_WRITE)) return 0;
    next = pages + room;  // the next piece begins with the page behind this one
    memset(pages, FRESH, room);
    Address address = (Address)(uintptr_t)(pages + room - aligned) | FAR;
    pieces[address] = {bytes, made, device, true, false, pages, room};
    in_use[device] += bytes;
    return address;
}

void condemn(Address address) { start_of(address, "free").condemned = true; }

void release(Address address) {
    auto it = pieces.find(address);
    // A condemned piece is freed now, in the order of its stream.
    Piece &piece = it != pieces.end() && it->second.live && it->second.condemned ? it->second : start_of(address, "free");
    drop(address, piece);
}

void release_all(int device) {
    for (auto &entry : pieces) {
        if (!entry.second.live || entry.second.device != device) continue;
        note("leaked allocation %zu of %zu bytes: it was live when its context ended", entry.second.number, entry.second.bytes);
        drop(entry.first, entry.second);
        ++leaked;
    }
}

char *host(Address address, size_t bytes, const char *what) {
    if (!(address & FAR)) fault("%s is %#llx, which is no device address", what, address);
    auto it = find(address);
    if (it == pieces.end() || address > it->first + it->second.bytes)
        fault("%s is %#llx, which is in no allocation, but %s", what, address, describe(far_to_host(address)).c_str());
    const Piece &piece = it->second;
    if (!piece.live) fault("use after free: %s is in allocation %zu of %zu bytes, which was freed", what, piece.number, piece.bytes);
    if (bytes > it->first + piece.bytes - address)
        fault("out of bounds: %s needs %zu bytes, and allocation %zu has %llu there (of %zu)", what, bytes, piece.number,
              it->first + piece.bytes - address, piece.bytes);
    return far_to_host(address);
}

void check(Address address, size_t bytes, const char *what) {
    host(address, bytes, what);
    const Piece &piece = find(address)->second;
    if (piece.condemned) fault("use after free: %s is in allocation %zu, whose free waits in a stream", what, piece.number);
    const Context *context = current_context();
    if (context && context->device != piece.device)
        fault("%s is in memory of device %d, and device %d is current", what, piece.device, context->device);
}

void check_margins(Address address) {
    auto it = find(address);
    if (it != pieces.end() && it->second.live) clear_margins(it->first, it->second, true);
}

bool is_start(Address address) {
    auto it = pieces.find(address);
    return it != pieces.end() && it->second.live;
}

std::string describe(const void *host_address) {
    Address address = (Address)(uintptr_t)host_address | FAR;
    char text[200];
    auto it = find(address);
    if (!next || host_address == nullptr || it == pieces.end() || (const char *)host_address > next + PAGE)
        return "an address far from all device memory";
    const Piece *piece = &it->second;
    Address behind = address - it->first;
    if (behind < piece->bytes) snprintf(text, sizeof text, "byte %llu of allocation %zu of %zu bytes%s", behind, piece->number, piece->bytes, piece->live ? "" : ", which was freed");
    else {
        auto after = std::next(it);
        if (after != pieces.end() && after->first - address < behind - piece->bytes)
            snprintf(text, sizeof text, "byte %llu before allocation %zu of %zu bytes", after->first - address, after->second.number, after->second.bytes);
        else snprintf(text, sizeof text, "byte %llu behind allocation %zu of %zu bytes", behind - piece->bytes + 1, piece->number, piece->bytes);
    }
    return text;
}
}  // namespace standin
