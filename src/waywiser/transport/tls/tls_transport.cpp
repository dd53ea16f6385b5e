#include "waywiser/transport/tls/tls_transport.hpp"

#include "waywiser/path/network_families.hpp"
#include "waywiser/transport/tls/kernel_tls.hpp"
#include "waywiser/transport/tls/tls_socket.hpp"

namespace waywiser {
namespace {

class TlsTransport : public Transport {
 public:
  TlsTransport(const Path& path, const TransportContext& context)
      : line_(path, peer_of(path, context), label(path) + " " + pair_text(path)), patience_(context.patience) {
    line_.connect(Deadline::in(context.connect_patience));
  }

  void put(Region destination, ConstRegion source, Stream&) override {
    if (destination.bytes != source.bytes) check_put(destination, source);
    line_.send(source);
  }

  void signal(Region, std::uint64_t value, Stream&) override {
    line_.send({reinterpret_cast<const std::byte*>(&value), sizeof value, host(0)});
    line_.finish_sends(Deadline::in(patience_));
  }

  bool two_sided() const override { return true; }
  void accept(Region destination, Stream&) override { line_.receive(destination); }
  void finish(Stream&, Deadline deadline) override { line_.finish(deadline); }

 private:
  TlsSocket line_;
  Seconds patience_;
};

std::optional<std::string> why_no_tls(const Path& path, const TransportContext&) {
  const bool by_kernel = is_by_kernel(path);
  if (path.source.other_machine() == path.destination.other_machine())
    return "it is for paths between two machines; nobody else can read traffic within one";
  if (path.source.is_gpu() || path.destination.is_gpu()) return "it sends host memory; groups stage GPU memory";
  if (!ssl_library().usable()) return ssl_library().why_not();
  if (by_kernel && !why_no_kernel_tls().empty()) return why_no_kernel_tls();
  const auto devices = devices_here(path.parameter("device"));
  if (devices.size() != 1 || address_of_device(devices.front()).empty())
    return "there is no device '" + std::string(path.parameter("device")) + "' with an IPv4 address here";
  return {};
}

Place tls_works_on(const Path& path) { return path.source; }

std::unique_ptr<Transport> open_tls(const Path& path, const TransportContext& context) {
  return std::make_unique<TlsTransport>(path, context);
}

PathSteps tls_steps(const Path& path, Bytes) {
  const bool by_kernel = is_by_kernel(path);
  const std::string_view what = "a socket buffer of the kernel";
  StepEnd out{path.source, what}, in{path.destination, what};
  const std::string who = by_kernel ? " in the kernel" : ", in OpenSSL,";
  return {{"the CPU" + who, "encrypts", StepEnd{path.source}, out},
          {std::string(path.parameter("device")), "reads", out, {}},
          {"the network", "carries the bytes", {}, {}},
          {"the card there", "writes", {}, in},
          {"the CPU there" + who, "decrypts", in, StepEnd{path.destination}}};
}

}  // namespace

Mechanism tls_mechanism() {
  Mechanism row{"tls",      "Between machines: encrypted messages over TCP, for jobs that ask for encryption.",
                why_no_tls, tls_works_on,
                open_tls,   tls_steps};
  row.two_sided = true;
  row.encrypts = true;
  return row;
}

}  // namespace waywiser
