#include "fibres.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>

#include "memory.hpp"

#ifndef __x86_64__
#error "The fibres change stacks by instructions of x86-64."
#endif
// Keeps the registers that a function has to keep, and changes stacks (swapcontext would cost a system call each time).
extern "C" void standin_switch(void **from, void *to) __attribute__((visibility("hidden")));
asm(".text\n.hidden standin_switch\n.globl standin_switch\nstandin_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\nmovq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");

namespace standin {
namespace {
constexpr size_t MOST = 1024, STACK = 1 << 16, PAGE = 4096;
constexpr int ENDED = -1, STARTED = -2;

struct Fibre {
    void *context;
    int barrier, line;  // where it waits; ENDED
    Dim at;
};
Fibre fibres[MOST];
char *stacks;
void *home;
size_t current;
const Entry *running;
void **values;
State *state;

std::string place() {
    char text[100];
    const Dim &b = state->block, &t = state->thread;
    snprintf(text, sizeof text, "block (%u, %u, %u), thread (%u, %u, %u)", b.x, b.y, b.z, t.x, t.y, t.z);
    return text;
}

void enter() {
    running->call(values);
    fibres[current].barrier = ENDED;
    standin_switch(&fibres[current].context, home);
}

// A page that nobody may touch lies below each stack.
char *stack_end(size_t fibre) {
    constexpr size_t room = STACK + PAGE;
    if (!stacks) {
        stacks = (char *)mmap(nullptr, MOST * room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stacks == MAP_FAILED) fault("no memory for the stacks of a block");
        for (size_t i = 0; i < MOST; ++i) mprotect(stacks + i * room, PAGE, PROT_NONE);
    }
    return stacks + (fibre + 1) * room;
}

void start(size_t fibre, Dim block) {
    Fibre &f = fibres[fibre];
    f.barrier = STARTED;
    f.at = {unsigned(fibre % block.x), unsigned(fibre / block.x % block.y), unsigned(fibre / block.x / block.y)};
    void **top = (void **)stack_end(fibre);
    top[-1] = nullptr;
    top[-2] = (void *)enter;
    f.context = top - 8;  // six registers, then the address to return to
}

// The signal comes on the fibre's own stack, or on the other one where that stack is full.
void illegal(int, siginfo_t *info, void *context) {
    const greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (info->si_signo == SIGFPE) fault("an integer is divided by zero, at %s", place().c_str());
    const char *at = (const char *)info->si_addr, *stack = stack_end(current) - STACK;
    if (at >= stack - PAGE && at < stack) fault("a thread's stack is full, at %s", place().c_str());
    fault("illegal address: a kernel %s %s, at %s", registers[REG_ERR] & 2 ? "writes" : "reads", describe(at).c_str(), place().c_str());
}

struct Signals {
    struct sigaction segv, bus, fpe;
    stack_t before;
    Signals() {
        static char *other = new char[1 << 16];
        stack_t now = {};
        now.ss_sp = other;
        now.ss_size = 1 << 16;
        sigaltstack(&now, &before);
        struct sigaction action = {};
        action.sa_sigaction = illegal;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigaction(SIGSEGV, &action, &segv);
        sigaction(SIGBUS, &action, &bus);
        sigaction(SIGFPE, &action, &fpe);
    }
    ~Signals() {
        sigaction(SIGSEGV, &segv, nullptr);
        sigaction(SIGBUS, &bus, nullptr);
        sigaction(SIGFPE, &fpe, nullptr);
        sigaltstack(&before, nullptr);
    }
};

// Until all threads wait at one barrier, or all have ended: true if they have.
bool round(size_t threads) {
    size_t first = chance() % threads;
    bool back = chance() >> 40 & 1;
    int barrier = STARTED, line = 0;
    for (size_t s = 0; s < threads; ++s) {
        current = (first + (back ? threads - s : s)) % threads;
        Fibre &f = fibres[current];
        state->thread = f.at;
        standin_switch(&home, f.context);
        if (barrier == STARTED) {
            barrier = f.barrier;
            line = f.line;
        }
        if (f.barrier == barrier) continue;
        if (f.barrier == ENDED || barrier == ENDED)
            fault("threads of a block part: some end, some wait at the barrier in line %d, at %s", barrier == ENDED ? f.line : line, place().c_str());
        fault("threads of a block part: some wait at the barrier in line %d, some at that in line %d, at %s", line, f.line, place().c_str());
    }
    return barrier == ENDED;
}
}  // namespace

void wait_at_barrier(int barrier, int line) {
    fibres[current].barrier = barrier;
    fibres[current].line = line;
    standin_switch(&fibres[current].context, home);
}

void broken_rule(const char *what, const char *file, unsigned line) {
    fault("%s, line %u of %s, at %s", what, line, file, place().c_str());
}

void launch(const Entry &entry, State &its_state, Shared shared, Dim grid, Dim block, void **arguments) {
    running = &entry;
    state = &its_state;
    values = arguments;
    state->grid = grid;
    state->block_size = block;
    size_t threads = (size_t)block.x * block.y * block.z, blocks = (size_t)grid.x * grid.y * grid.z;
    // Blocks in steps that are prime to their number: each comes once.
    size_t stride = chance() % blocks + 1, at = chance() % blocks;
    while (std::gcd(stride, blocks) != 1) ++stride;
    Signals signals;
    for (size_t i = 0; i < blocks; ++i, at = (at + stride) % blocks) {
        state->block = {unsigned(at % grid.x), unsigned(at / grid.x % grid.y), unsigned(at / grid.x / grid.y)};
        memset(shared.begin, FRESH, shared.end - shared.begin);
        for (size_t t = 0; t < threads; ++t) start(t, block);
        while (!round(threads)) {}
    }
}
}  // namespace standin
