#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/heap/nvshmem/nvshmem_host.hpp"
#include "waywiser/heap/nvshmem/nvshmem_job.hpp"

namespace waywiser::nvshmem {

// The program's job and the modules with kernels, of which there is one each in a process.
struct NvshmemProcess {
  int inits = 0;
  std::optional<Group> group;
  std::optional<NvshmemJob> job;
  std::vector<Publish> modules;
};
NvshmemProcess& process();

// Throws invalid_input before nvshmem_init.
NvshmemJob& job();
void publish();

// Ends the process once the other PEs have been told why: one that has gone before could only be missed.
[[noreturn]] void end_process(const std::string& why, int code) noexcept;

// What `call` returns; an error ends the process.
template <typename Call>
auto ended_by_error(const char* name, Call call) {
  try {
    return call();
  } catch (const std::exception& error) {
    const auto* of_us = dynamic_cast<const Error*>(&error);
    const std::string said = std::string(name) + ": " + error.what();
    std::fprintf(stderr, "%s\n", said.c_str());
    end_process(said, of_us != nullptr && of_us->kind() == ErrorKind::invalid_input ? 2 : 1);
  }
}

}  // namespace waywiser::nvshmem
