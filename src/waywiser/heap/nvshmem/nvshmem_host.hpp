#pragma once

#include <cstddef>
#include <cstdint>

#include "waywiser/comm/data_type.hpp"
#include "waywiser/heap/nvshmem/nvshmem_terms.hpp"

// What waywiser/nvshmem.h calls on the host. A call that cannot be done ends the process with one line: exit code 2 for
// wrong arguments, else 1.
namespace waywiser::nvshmem {

#pragma GCC visibility push(default)

// Writes the constants that kernels of a module use; returns why it cannot, or nullptr.
using Publish = const char* (*)(const NvshmemTerms&);
bool add_module(Publish publish);

void init();
bool is_init();
void finalize();
[[noreturn]] void global_exit(int code);
[[noreturn]] void fail(const char* call, const char* why);

int rank();
int size();
int rank_in(int team);
int size_of(int team);
int translate(int from_team, int rank, int to_team);

// Collective. `device`: the caller's present device, which has the symmetric memory from the first such call on.
void open(int device);
void* allocate(int device, std::size_t bytes, std::size_t alignment, bool zeros);
void release(void* symmetric);
int split_strided(int device, int parent, int start, int stride, int size);
void split_2d(int device, int parent, int columns, int& row, int& column);
void destroy(int team);

void* pointer(const void* symmetric, int rank);

// The stream is a cudaStream_t; without one a call is complete when it returns.
struct On {
  void* stream = nullptr;
  bool waits = true;
};
void put(void* destination, const void* source, std::size_t bytes, int rank, On on);
void get(void* destination, const void* source, std::size_t bytes, int rank, On on);
void signal(std::uint64_t* word, std::uint64_t value, int op, int rank, On on);
void wait_until(std::uint64_t* word, int comparison, std::uint64_t value, On on);
int barrier(int team, On on);
int broadcast(int team, void* destination, const void* source, std::size_t bytes, int root, On on);
int all_gather(int team, void* destination, const void* source, std::size_t bytes, On on);
int all_to_all(int team, void* destination, const void* source, std::size_t bytes, On on);
int reduce(int team, void* destination, const void* source, std::size_t count, DataType type, one_sided::TeamOp op,
           On on);

#pragma GCC visibility pop

}  // namespace waywiser::nvshmem
