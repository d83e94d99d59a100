// Runs a launch on the host: each thread of a block is a fibre, which runs until it waits at a barrier or ends.
#pragma once
#include "abi.hpp"

namespace standin {
// Threads and blocks come in an order that STANDIN_SEED gives.
void launch(const Entry &entry, State &state, Shared shared, Dim grid, Dim block, void **arguments);
// To be given to a text, in State.
void wait_at_barrier(int barrier, int line);
void broken_rule(const char *what, const char *file, unsigned line);
}  // namespace standin
