#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace waywiser::fuzz {

using Bytes = std::span<const std::byte>;
inline constexpr double patience = 20;  // seconds for operations that must not wait

// One of our parsers or sockets that read input from outside. If it breaks a promise, `run` throws std::logic_error or
// anything else but our Error.
struct Target {
  std::string_view name;
  void (*run)(Bytes input);
};
std::span<const Target> targets();
const Target* find_target(std::string_view name);

// Runs `read`; a refusal must be our Error, in one line that a terminal can show. True: it was read.
bool reads_or_refuses(const std::function<void()>& read);
void promise(bool kept, const std::string& what);

inline std::string_view text_of(Bytes input) { return {reinterpret_cast<const char*>(input.data()), input.size()}; }

// Splits an input into values; after its end, all values are zero.
class Choices {
 public:
  explicit Choices(Bytes input) : input_(input) {}
  bool over() const { return input_.empty(); }
  std::size_t number();  // 0 to 255
  Bytes bytes(std::size_t most);
  Bytes rest() { return bytes(input_.size()); }

 private:
  Bytes input_;
};

void topology_json(Bytes input);
void profile_json(Bytes input);
void plan_json(Bytes input);
void frames(Bytes input);
void reception(Bytes input);
void lifeline(Bytes input);
void peer_messages(Bytes input);
void launch(Bytes input);
void remote_frames(Bytes input);
void worker_requests(Bytes input);

}  // namespace waywiser::fuzz
