#include "waywiser/comm/bootstrap/introduction.hpp"

#include <unistd.h>

#include <array>
#include <fstream>

namespace waywiser {
namespace {

constexpr std::size_t longest_entry = 512;
constexpr std::size_t longest_cores = 4096;
constexpr std::size_t longest_address = 64 << 10;
constexpr std::uint32_t most_rails = 256;

std::vector<std::byte> read_address(WireReader& reader) {
  const auto address = reader.block(longest_address);
  return {address.begin(), address.end()};
}

std::string link_target(const char* link) {
  std::array<char, 128> text{};
  const auto length = ::readlink(link, text.data(), text.size());
  return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : "";
}

std::string or_none(const std::string& text) { return text.empty() ? "none" : text; }

// "1.13.1" -> "1.13": the rest does not affect compatibility.
std::string release_of(const std::string& version) {
  return version.substr(0, version.find('.', version.find('.') + 1));
}

}  // namespace

void write_offers(WireWriter& writer, const Introduction& introduction) {
  writer.block(introduction.address);
  writer.text(introduction.mailbox);
  writer.text(introduction.node);
  writer.number(static_cast<std::uint32_t>(introduction.rails.size()));
  for (const RailOffer& rail : introduction.rails) {
    writer.text(rail.name);
    writer.block(rail.address);
  }
}

void read_offers(WireReader& reader, Introduction& introduction) {
  introduction.address = read_address(reader);
  introduction.mailbox = reader.text(longest_entry);
  introduction.node = reader.text(longest_entry);
  const auto rails = reader.number<std::uint32_t>();
  if (rails > most_rails) reader.refuse(std::to_string(rails) + " rails");
  introduction.rails.clear();
  for (std::uint32_t i = 0; i < rails; ++i) {
    RailOffer& rail = introduction.rails.emplace_back();
    rail.name = reader.text(longest_entry);
    rail.address = read_address(reader);
  }
}

void write(WireWriter& writer, const Introduction& introduction) {
  writer.number(introduction.rank);
  writer.number(introduction.size);
  writer.text(introduction.version);
  writer.text(introduction.ucx);
  writer.text(introduction.plan);
  writer.text(introduction.machine_id);
  writer.text(introduction.host);
  writer.number(introduction.process);
  writer.number(static_cast<std::uint8_t>(introduction.gpus));
  writer.text(introduction.cores);
  writer.text(introduction.encrypted);
  writer.text(introduction.reach);
  writer.text(introduction.system);
  write_offers(writer, introduction);
}

Introduction read_introduction(WireReader& reader) {
  Introduction introduction;
  introduction.rank = reader.number<std::uint32_t>();
  introduction.size = reader.number<std::uint32_t>();
  introduction.version = reader.text(longest_entry);
  introduction.ucx = reader.text(longest_entry);
  introduction.plan = reader.text(longest_entry);
  introduction.machine_id = reader.text(longest_entry);
  introduction.host = reader.text(longest_entry);
  introduction.process = reader.number<std::uint64_t>();
  introduction.gpus = reader.number<std::uint8_t>() != 0;
  introduction.cores = reader.text(longest_cores);
  introduction.encrypted = reader.text(longest_entry);
  introduction.reach = reader.text(longest_entry);
  introduction.system = reader.text(longest_entry);
  read_offers(reader, introduction);
  return introduction;
}

std::string difference(const Introduction& root, const Introduction& other) {
  const std::string who = "rank " + std::to_string(other.rank) + " on " + other.host + " ";
  if (other.size != root.size)
    return who + "counts " + std::to_string(other.size) + " ranks, rank 0 " + std::to_string(root.size);
  if (other.version != root.version) return who + "has Waywiser " + other.version + ", rank 0 " + root.version;
  if (release_of(other.ucx) != release_of(root.ucx))
    return who + "has UCX " + other.ucx + ", rank 0 " + root.ucx + ": WAYWISER_LIBUCP names the one to use";
  if (other.encrypted.empty() != root.encrypted.empty())
    return who + (root.encrypted.empty() ? "encrypts, rank 0 does not" : "does not encrypt, rank 0 does") +
           ": WAYWISER_ENCRYPT is to be the same for all";
  if (other.plan != root.plan) return who + "follows plan " + or_none(other.plan) + ", rank 0 " + or_none(root.plan);
  return {};
}

std::string system_id() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return boot;
}

std::string namespace_id(const std::string& kind) { return link_target(("/proc/self/ns/" + kind).c_str()); }

std::string machine_id() { return system_id() + " " + namespace_id("ipc") + " " + namespace_id("net"); }

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown host";
  return name.data();
}

}  // namespace waywiser
