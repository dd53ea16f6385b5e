#include "waywiser/group/failure_at_all.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "waywiser/group/group.hpp"

namespace waywiser {
namespace {

struct RankFailure {
  bool failed = false;
  ErrorKind kind = ErrorKind::io;
  std::array<char, 400> text{};
};

}  // namespace

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
    if (all[rank].failed) throw Error(all[rank].kind, "rank " + std::to_string(rank) + ": " + all[rank].text.data());
}

}  // namespace waywiser
