#include "waywiser/comm/bootstrap/root_network.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>

#include "waywiser/base/error.hpp"
#include "waywiser/topology/system_files.hpp"

namespace waywiser {
namespace {

bool is_loopback(const sockaddr& address) {
  constexpr std::uint32_t of_this_machine = 127;
  if (address.sa_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == of_this_machine;
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

// Compares the addresses without ports.
bool same_address(const sockaddr& one, const sockaddr& other) {
  if (one.sa_family != other.sa_family) return false;
  if (one.sa_family == AF_INET)
    return reinterpret_cast<const sockaddr_in&>(one).sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in&>(other).sin_addr.s_addr;
  return one.sa_family == AF_INET6 &&
         std::memcmp(&reinterpret_cast<const sockaddr_in6&>(one).sin6_addr,
                     &reinterpret_cast<const sockaddr_in6&>(other).sin6_addr, sizeof(in6_addr)) == 0;
}

// The source address from which the kernel would send to the root; nothing is sent.
sockaddr_storage source_towards(const addrinfo& root, const std::string& name) {
  const Descriptor probe(::socket(root.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage mine{};
  socklen_t length = sizeof mine;
  if (!probe.open() || ::connect(probe.number(), root.ai_addr, root.ai_addrlen) != 0 ||
      ::getsockname(probe.number(), reinterpret_cast<sockaddr*>(&mine), &length) != 0)
    throw Error(ErrorKind::unavailable, "this machine has no way to " + name + ": " + last_system_error());
  return mine;
}

std::string interface_where(const std::function<bool(const ifaddrs&)>& fits) {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(raw, ::freeifaddrs);
  for (const ifaddrs* entry = raw; entry != nullptr; entry = entry->ifa_next)
    if (entry->ifa_addr != nullptr && fits(*entry)) return entry->ifa_name;
  return {};
}

// The interface and those below it, if it is a bond, a bridge or a VLAN.
std::vector<std::string> with_lower_ones(const SystemFiles& files, const std::string& interface) {
  std::vector<std::string> all{interface};
  for (const std::string& name : files.list("/sys/class/net/" + interface))
    if (name.starts_with("lower_")) all.push_back(name.substr(std::strlen("lower_")));
  return all;
}

}  // namespace

bool is_loopback(const Endpoint& root) { return is_loopback(*resolve(root)->ai_addr); }

bool loopback_is_up() {
  return !interface_where([](const ifaddrs& entry) {
            return (entry.ifa_flags & IFF_LOOPBACK) != 0 && (entry.ifa_flags & IFF_UP) != 0;
          }).empty();
}

std::string interface_towards(const Endpoint& root) {
  const Addresses addresses = resolve(root);
  const sockaddr_storage mine = source_towards(*addresses, text(root));
  const auto& source = reinterpret_cast<const sockaddr&>(mine);
  const bool inside = is_loopback(source);
  const std::string found = interface_where([&](const ifaddrs& entry) {
    return inside ? (entry.ifa_flags & IFF_LOOPBACK) != 0 : same_address(*entry.ifa_addr, source);
  });
  if (found.empty())
    throw Error(ErrorKind::unavailable, "no network interface here has the address towards " + text(root));
  return found;
}

std::string address_towards(const Endpoint& root) {
  const Addresses addresses = resolve(root);
  const sockaddr_storage mine = source_towards(*addresses, text(root));
  std::array<char, NI_MAXHOST> host{};
  const int problem = ::getnameinfo(reinterpret_cast<const sockaddr*>(&mine), addresses->ai_addrlen, host.data(),
                                    host.size(), nullptr, 0, NI_NUMERICHOST);
  if (problem != 0)
    throw Error(ErrorKind::io, "no address of this machine towards " + text(root) + ": " + ::gai_strerror(problem));
  return host.data();
}

std::vector<std::string> rdma_devices_on(const std::string& interface) {
  const SystemFiles files("");
  const std::vector<std::string> interfaces = with_lower_ones(files, interface);
  std::vector<std::string> found;
  for (const std::string& device : files.list(rdma_folder))
    for (const std::string& port : files.list(rdma_folder + device + "/ports")) {
      const auto is_on = [&](const std::string& name) {
        return files.line(rdma_folder + device + "/ports/" + port + "/gid_attrs/ndevs/0") == name ||
               files.exists("/sys/class/net/" + name + "/device/infiniband/" + device);
      };
      if (interface.empty() || std::ranges::any_of(interfaces, is_on)) found.push_back(device + ":" + port);
    }
  return found;
}

}  // namespace waywiser
