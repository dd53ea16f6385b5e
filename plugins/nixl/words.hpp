#pragma once

#include <stdexcept>
#include <string>

#include "nixl_types.hpp"

namespace waywiser_nixl {

// Why a call is refused: what NIXL gets, and the line for people.
struct Refusal : std::runtime_error {
  Refusal(Status told, const std::string& why) : runtime_error(why), status(told) {}
  Status status;
};

// One line on standard error; each text once in a process, and at most 100.
void say(const std::string& text);

// Runs a call of NIXL's, into which no exception may get.
template <typename Call>
Status told(const Call& call) noexcept {
  try {
    return call();
  } catch (const Refusal& refusal) {
    say(refusal.what());
    return refusal.status;
  } catch (const std::exception& error) {
    say(error.what());
    return Status::backend_error;
  }
}

}  // namespace waywiser_nixl
