#include "waywiser/transport/tls/kernel_tls.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "waywiser/base/error.hpp"
#include "waywiser/device/descriptor.hpp"

namespace waywiser {
namespace {

// Asked of a connection of this process with itself; asking loads the module where the process may do that.
std::string ask_kernel() {
  const Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Descriptor line(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  if (::bind(listener.number(), any, length) != 0 || ::listen(listener.number(), 1) != 0 ||
      ::getsockname(listener.number(), any, &length) != 0 || ::connect(line.number(), any, length) != 0)
    return "the loopback cannot be used: " + last_system_error();
  if (::setsockopt(line.number(), IPPROTO_TCP, TCP_ULP, "tls", sizeof "tls") == 0) return {};
  const bool absent = errno == ENOENT || errno == ENOPROTOOPT;
  return absent ? "this kernel has no TLS, or its module is not loaded (modprobe tls)"
                : "the kernel takes no TLS: " + last_system_error();
}

}  // namespace

const std::string& why_no_kernel_tls() {
  static const std::string why = ask_kernel();
  return why;
}

}  // namespace waywiser
