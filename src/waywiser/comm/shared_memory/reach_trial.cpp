#include "waywiser/comm/shared_memory/reach_trial.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <sstream>

#include "waywiser/base/crypto.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/shared_memory/shared_copy.hpp"

namespace waywiser {
namespace {

constexpr std::size_t token_bytes = 16;
using Token = std::array<std::byte, token_bytes>;

struct Offer {
  int file = -1;
  std::uint64_t address = 0;
  std::string token;  // hexadecimal
};

Offer read_offer(const std::string& text) {
  Offer offer;
  const bool whole = static_cast<bool>(std::istringstream(text) >> offer.file >> offer.address >> offer.token);
  return whole ? offer : Offer();
}

}  // namespace

ReachTrial::ReachTrial() {
  constexpr const char* what = "the memory by which ranks try whether they are neighbours";
  try {
    Token token{};
    fill_with_random(token);
    file_ = create_shared_file(token_bytes, what);
    memory_ = Mapping::of_file(file_, token_bytes, true, what);
    std::memcpy(memory_.data(), token.data(), token.size());
    offer_ = std::to_string(file_.number()) + " " + std::to_string(reinterpret_cast<std::uintptr_t>(memory_.data())) +
             " " + hexadecimal(token);
  } catch (const Error&) {  // nobody reaches it
  }
}

// The copies come second: only the file shows that the process is the one that is meant. In another PID namespace its
// number may be that of this very process.
Reach ReachTrial::of(const Introduction& other) {
  const Offer offer = read_offer(other.reach);
  if (offer.file < 0) return {false, false, "it can share no memory file"};
  const std::string path = "/proc/" + std::to_string(other.process) + "/fd/" + std::to_string(offer.file);
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!file.open()) return {false, false, path + ": " + last_system_error()};
  Token token{};
  const bool same = ::pread(file.number(), token.data(), token.size(), 0) == static_cast<ssize_t>(token.size()) &&
                    hexadecimal(token) == offer.token;
  if (!same) return {false, false, path + " is another file here"};
  Token copied{};
  const bool copies = read_memory(process_to_copy(other.process), copied.data(), offer.address, copied.size());
  return {true, copies && copied == token, {}};
}

}  // namespace waywiser
