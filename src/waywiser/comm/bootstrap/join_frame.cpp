#include "waywiser/comm/bootstrap/join_frame.hpp"

namespace waywiser {
namespace {

constexpr std::size_t longest_listener = 512;

}  // namespace

std::vector<std::byte> bytes_of(const Joining& joining) {
  WireWriter writer;
  write(writer, joining.mine);
  writer.number(static_cast<std::uint32_t>(joining.branches));
  writer.text(joining.listens);
  return writer.bytes();
}

Joining read_joining(WireReader& reader) {
  Joining joining{read_introduction(reader)};
  joining.branches = static_cast<int>(reader.number<std::uint32_t>());
  joining.listens = reader.text(longest_listener);
  reader.end();
  return joining;
}

std::string difference(const Joining& root, const Joining& other) {
  if (other.branches == root.branches) return difference(root.mine, other.mine);
  return "rank " + std::to_string(other.mine.rank) + " on " + other.mine.host +
         " has WAYWISER_BRANCHES=" + std::to_string(other.branches) + ", rank " + std::to_string(root.mine.rank) + " " +
         std::to_string(root.branches);
}

}  // namespace waywiser
