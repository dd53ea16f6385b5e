#include "waywiser/comm/bootstrap/unique_id.hpp"

#include <algorithm>
#include <cstring>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/kept_listener.hpp"
#include "waywiser/comm/bootstrap/root_network.hpp"
#include "waywiser/comm/bootstrap/tcp.hpp"

namespace waywiser {
namespace {

constexpr std::size_t longest_host = 63;
constexpr std::uint16_t discard_port = 9;  // nothing is sent

// The bytes of an id.
struct IdContents {
  std::array<char, 8> mark{'w', 'a', 'y', 'w', 'i', 'd', '0', '1'};
  std::array<std::byte, 8> job{};
  std::array<std::byte, 32> secret{};
  std::uint16_t port = 0;
  std::array<char, longest_host + 1> host{};  // ends with a zero; empty: the ranks meet in the runtime folder
};
static_assert(sizeof(IdContents) <= sizeof(UniqueId));

[[noreturn]] void refuse_id(const std::string& why) { throw Error(ErrorKind::invalid_input, why); }

// Its own address towards that host, as others reach it.
std::string own_address(const std::string& towards) {
  const std::string address = address_towards(Endpoint{towards, discard_port});
  if (is_loopback(Endpoint{address, discard_port}) && towards != address && towards != "localhost")
    refuse_id(quoted(towards, 80) +
              " has a loopback address here: name a host of another machine, or an address of this one");
  if (address.size() > longest_host) refuse_id("the address " + quoted(address, 80) + " is too long");
  return address;
}

}  // namespace

UniqueId make_unique_id(const std::string& towards) {
  IdContents contents;
  fill_with_random(contents.job);
  fill_with_random(contents.secret);
  if (!towards.empty()) {
    const std::string host = own_address(towards);
    Descriptor listener = listen_on({host, 0});
    contents.port = port_of(listener);
    std::ranges::copy(host, contents.host.begin());
    keep_listener({host, contents.port}, std::move(listener));
  }
  UniqueId id{};
  std::memcpy(id.data(), &contents, sizeof contents);
  wipe(contents.secret);
  return id;
}

Launch launch_by(const UniqueId& id, int rank, int size) {
  IdContents contents;
  std::memcpy(static_cast<void*>(&contents), id.data(), sizeof contents);
  if (contents.mark != IdContents().mark || contents.host.back() != 0)
    refuse_id("these bytes are no unique id: it has not been made, or by another version");
  if (size < 1 || rank < 0 || rank >= size)
    refuse_id("rank " + std::to_string(rank) + " of " + std::to_string(size) + ": ranks are 0 to size - 1");
  Launch launch;
  launch.launcher = "unique id";
  launch.rank = rank;
  launch.size = size;
  launch.job = "id-" + hexadecimal(contents.job);
  const std::string host = contents.host.data();
  if (!host.empty()) launch.root = Endpoint{host, contents.port};
  launch.secret = hexadecimal(contents.secret);
  wipe(contents.secret);
  return launch;
}

}  // namespace waywiser
