#pragma once

#include <cstddef>
#include <cstdint>

// The parts of NCCL's plug-in interfaces that are used here, as its libraries lay them out.
namespace waywiser_nccl {

using Result = int;
inline constexpr Result success = 0, invalid_usage = 5;

// Level, subsystem, file, line, format: only its address is used, which tells the library.
using LogFunction = void (*)(int, unsigned long, const char*, int, const char*, ...);

enum Collective : int { broadcast, reduce, all_gather, reduce_scatter, all_reduce, collectives };

using Init = Result (*)(void** context, std::uint64_t id, std::size_t ranks, std::size_t nodes, LogFunction log,
                        void* domains, void* constants);
using GetCollInfo = Result (*)(void* context, int collective, std::size_t bytes, int operations, float** costs,
                               int algorithms, int protocols, int registered, int* channels);
using GetChunkSize = Result (*)(void* context, int collective, std::size_t bytes, int algorithm, int protocol,
                                int channels, std::size_t* chunk);
using Finalize = Result (*)(void* context);

struct TunerV4 {
  const char* name;
  Result (*init)(std::size_t ranks, std::size_t nodes, LogFunction log, void** context);
  GetCollInfo get_coll_info;
  Finalize destroy;
};

struct TunerV5 {
  const char* name;
  Init init;
  GetCollInfo get_coll_info;
  Finalize finalize;
};

// Version 7 differs by constants that are not used here.
struct TunerV6 {
  const char* name;
  Init init;
  GetCollInfo get_coll_info;
  Finalize finalize;
  GetChunkSize get_chunk_size;
};

using GetEnv = const char* (*)(const char* name);

struct EnvV1 {
  const char* name;
  Result (*init)(std::uint8_t major, std::uint8_t minor, std::uint8_t patch, const char* suffix);
  Result (*finalize)();
  GetEnv get_env;
};

struct EnvV2 {
  const char* name;
  Result (*init)(std::uint8_t major, std::uint8_t minor, std::uint8_t patch, const char* suffix, LogFunction log);
  Result (*finalize)();
  GetEnv get_env;
};

}  // namespace waywiser_nccl
