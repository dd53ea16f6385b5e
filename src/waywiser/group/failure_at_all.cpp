#include "waywiser/group/failure_at_all.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "waywiser/collective/group_core.hpp"
#include "waywiser/group/group.hpp"

namespace waywiser {
namespace {

struct RankFailure {
  bool failed = false;
  ErrorKind kind = ErrorKind::io;
  std::array<char, 400> text{};
};

// Who has met the others here knows the error, whatever happens next.
template <typename Meet>
[[noreturn]] void throw_after(Meet meet, const Error& error) {
  try {
    meet();
  } catch (const Error& other) {
    if (other.kind() == ErrorKind::interrupted) throw;
  }
  throw error;
}

}  // namespace

void throw_known_to_all(Group& group, const Error& error) {
  throw_after([&] { group.barrier(); }, error);
}

void throw_known_to_all(GroupCore& core, const Error& error) {
  const std::byte mine{};
  std::vector<std::byte> all(static_cast<std::size_t>(core.size()));
  throw_after([&] { core.all_gather(std::span(&mine, 1), all); }, error);
}

void throw_at_all(Group& group, const std::optional<Error>& failed) {
  RankFailure mine;
  if (failed) {
    mine.failed = true;
    mine.kind = failed->kind();
    std::string(failed->what()).copy(mine.text.data(), mine.text.size() - 1);
  }
  std::vector<RankFailure> all(static_cast<std::size_t>(group.size()));
  const auto bytes_of = [](auto* first, std::size_t count) {
    return Region{reinterpret_cast<std::byte*>(first), count * sizeof(RankFailure), host(0)};
  };
  group.all_gather(ConstElements(bytes_of(&mine, 1), DataType::uint8),
                   Elements(bytes_of(all.data(), all.size()), DataType::uint8));
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].failed)
      throw_known_to_all(group, Error(all[rank].kind, "rank " + std::to_string(rank) + ": " + all[rank].text.data()));
}

}  // namespace waywiser
