#include "tests/fuzz/targets.hpp"

#include <algorithm>
#include <stdexcept>

#include "waywiser/base/error.hpp"

namespace waywiser::fuzz {
namespace {

constexpr std::size_t longest_refusal = 1500;
constexpr Target all[] = {{"topology_json", topology_json}, {"profile_json", profile_json},
                          {"plan_json", plan_json},         {"frames", frames},
                          {"reception", reception},         {"lifeline", lifeline},
                          {"peer_messages", peer_messages}, {"launch", launch},
                          {"remote_frames", remote_frames}, {"worker_requests", worker_requests}};

}  // namespace

std::span<const Target> targets() { return all; }

const Target* find_target(std::string_view name) {
  const auto found = std::ranges::find(all, name, &Target::name);
  return found == std::end(all) ? nullptr : &*found;
}

void promise(bool kept, const std::string& what) {
  if (!kept) throw std::logic_error(what);
}

bool reads_or_refuses(const std::function<void()>& read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    const std::string words = error.what();
    promise(error.kind() == ErrorKind::invalid_input, "not refused as bad input: " + words);
    promise(!words.empty() && words.size() < longest_refusal, "a refusal of " + std::to_string(words.size()));
    promise(words.find('\n') == std::string::npos, "a refusal of several lines: " + words);
    return false;
  }
}

std::size_t Choices::number() {
  const Bytes one = bytes(1);
  return one.empty() ? 0 : std::to_integer<std::size_t>(one.front());
}

Bytes Choices::bytes(std::size_t most) {
  const Bytes part = input_.first(std::min(most, input_.size()));
  input_ = input_.subspan(part.size());
  return part;
}

}  // namespace waywiser::fuzz
