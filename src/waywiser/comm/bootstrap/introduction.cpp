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

using Text = SharedText Introduction::*;
constexpr std::array<Text, 7> texts{&Introduction::version, &Introduction::ucx,        &Introduction::plan,
                                    &Introduction::host,    &Introduction::machine_id, &Introduction::system,
                                    &Introduction::cores};
// Of a row of the table, behind a bit for each text that is not that of the row before.
constexpr unsigned has_gpus = 1u << texts.size(), has_offers = has_gpus << 1, most_marks = 2 * has_offers - 1;

std::size_t longest_of(Text text) { return text == &Introduction::cores ? longest_cores : longest_entry; }

std::vector<std::byte> read_address(WireReader& reader) {
  const auto address = reader.block(longest_address);
  return {address.begin(), address.end()};
}

std::string link_target(const char* link) {
  std::array<char, 128> text{};
  const auto length = ::readlink(link, text.data(), text.size());
  return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : "";
}

bool is_within(const Introduction& rank) { return rank.machine_id == rank.system; }

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
  writer.number(introduction.process);
  writer.number(static_cast<std::uint8_t>(introduction.gpus));
  for (const Text text : texts) writer.text((introduction.*text).text());
  writer.text(introduction.encrypted);
  writer.text(introduction.reach);
  write_offers(writer, introduction);
}

Introduction read_introduction(WireReader& reader) {
  Introduction introduction;
  introduction.rank = reader.number<std::uint32_t>();
  introduction.size = reader.number<std::uint32_t>();
  introduction.process = reader.number<std::uint64_t>();
  introduction.gpus = reader.number<std::uint8_t>() != 0;
  for (const Text text : texts) introduction.*text = reader.text(longest_of(text));
  introduction.encrypted = reader.text(longest_entry);
  introduction.reach = reader.text(longest_entry);
  read_offers(reader, introduction);
  return introduction;
}

void write_table(WireWriter& writer, const std::vector<Introduction>& ranks) {
  const Introduction nobody;
  const Introduction* before = &nobody;
  for (const Introduction& one : ranks) {
    unsigned marks = one.gpus ? has_gpus : 0;
    if (!one.address.empty() || !one.mailbox.empty() || !one.node.empty() || !one.rails.empty()) marks |= has_offers;
    for (std::size_t i = 0; i < texts.size(); ++i)
      if (one.*texts[i] != before->*texts[i]) marks |= 1u << i;
    writer.number(static_cast<std::uint16_t>(marks));
    writer.number(one.process);
    for (std::size_t i = 0; i < texts.size(); ++i)
      if ((marks >> i & 1) != 0) writer.text((one.*texts[i]).text());
    writer.text(one.encrypted);
    writer.text(one.reach);
    if ((marks & has_offers) != 0) write_offers(writer, one);
    before = &one;
  }
}

std::vector<Introduction> read_table(WireReader& reader, std::size_t ranks) {
  std::vector<Introduction> table;
  table.reserve(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Introduction& one = table.emplace_back();
    if (rank != 0)
      for (const Text text : texts) one.*text = table[rank - 1].*text;
    const unsigned marks = reader.number<std::uint16_t>();
    if (marks > most_marks) reader.refuse("unknown marks");
    one.rank = static_cast<std::uint32_t>(rank);
    one.size = static_cast<std::uint32_t>(ranks);
    one.process = reader.number<std::uint64_t>();
    one.gpus = (marks & has_gpus) != 0;
    for (std::size_t i = 0; i < texts.size(); ++i)
      if ((marks >> i & 1) != 0) one.*texts[i] = reader.text(longest_of(texts[i]));
    one.encrypted = reader.text(longest_entry);
    one.reach = reader.text(longest_entry);
    if ((marks & has_offers) != 0) read_offers(reader, one);
  }
  return table;
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
  // A rank that takes the job for one within a machine opens no network.
  if (other.system == root.system && is_within(other) != is_within(root))
    return who +
           (is_within(other) ? "has no WAYWISER_MACHINE, rank 0 has one" : "has a WAYWISER_MACHINE, rank 0 has none") +
           ": either all ranks of a machine have one, or none";
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
