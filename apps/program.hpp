#pragma once

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <waywiser/base/error.hpp>
#include <waywiser/group/group.hpp>

#include "apps/options.hpp"
#include "apps/parallel.hpp"
#ifdef APPS_MPI
#include <mpi.h>
#endif

namespace apps {

// A computation has come to no result that counts, at all ranks: it has blown up, or was not solved. The text says why.
class NoResult : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What main() returns: 0 if run(group, options) has returned, 2 if it refused its input, 3 if there is NoResult, else
// 1, with a line of why. All ranks have the same words, so that all refuse them, and rank 0 says why.
template <typename Run>
int run_program(int count, char** words, Options options, Run run) {
  if (count == 2 && std::string_view(words[1]) == "--help") {
    std::fputs(options.usage().c_str(), stdout);
    return 0;
  }
  const auto say = [&](const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", options.program().c_str(), error.what());
  };
  try {
#ifdef APPS_MPI
    MPI_Init(&count, &words);
#endif
    waywiser::Group group = join();
    const auto end_together = [&](const std::exception& error, int code) {
      std::fflush(stdout);
      if (group.rank() == 0) say(error);
      group.set_timeout(5);
      group.barrier();  // a launcher ends all ranks with the first one: not before rank 0 has said why
      return code;
    };
    try {
      options.read(count, words);
      run(group, options);
    } catch (const NoResult& error) {
      return end_together(error, 3);
    } catch (const waywiser::Error& error) {
      if (error.kind() != waywiser::ErrorKind::invalid_input) throw;
      return end_together(error, 2);
    }
    std::fflush(stdout);
    group.close();
#ifdef APPS_MPI
    MPI_Finalize();  // not after an error: the launcher then ends the other ranks
#endif
    return 0;
  } catch (const std::exception& error) {
    say(error);
    return 1;
  }
}

}  // namespace apps
