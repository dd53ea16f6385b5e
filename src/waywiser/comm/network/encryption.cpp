#include "waywiser/comm/network/encryption.hpp"

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/job_network.hpp"
#include "waywiser/comm/bootstrap/root_network.hpp"
#include "waywiser/comm/message/tag.hpp"
#include "waywiser/transport/tls/kernel_tls.hpp"

namespace waywiser {
namespace {

constexpr const char* kernel_variable = "WAYWISER_KERNEL_TLS";
constexpr std::string_view purpose = "waywiser encrypted messages";

// The size for which the plan is asked.
constexpr Bytes usual_bytes = 1 << 20;

bool plan_says_kernel(const Chooser* chooser) {
  if (chooser == nullptr) return false;
  const PlanRow* row =
      chooser->choose(host(0), seen_from_other(host(0)), 2, Operation::streaming, usual_bytes, {}, true);
  if (row == nullptr) return false;
  const Path path = row->path();
  return path.has("by") && path.parameter("by") == "kernel";
}

bool wants_kernel(const Chooser* chooser) {
  if (!environment(kernel_variable)) return plan_says_kernel(chooser) && why_no_kernel_tls().empty();
  if (!switched_on(kernel_variable)) return false;
  if (!why_no_kernel_tls().empty())
    throw Error(ErrorKind::unavailable, std::string(kernel_variable) + "=1: " + why_no_kernel_tls());
  return true;
}

}  // namespace

bool switched_on(const char* name) {
  const std::string value = environment(name).value_or("0");
  if (value != "0" && value != "1")
    throw Error(ErrorKind::invalid_input, std::string(name) + "=" + quoted(value, 40) + ": it is 0 or 1");
  return value == "1";
}

std::string wanted_encryption(const Chooser* chooser) { return wants_kernel(chooser) ? "kernel" : "openssl"; }

std::unique_ptr<EncryptedMessages> encrypted_messages(const Launch& launch, const Chooser* chooser) {
  if (launch.secret.empty())
    throw Error(ErrorKind::unavailable,
                "encryption needs a WAYWISER_SECRET that all ranks of the job have: it is not set");
  const EncryptedMessages::Options options{wants_kernel(chooser)};
  TlsKey key = hmac_sha256(launch.secret.bytes(), std::as_bytes(std::span(purpose)));
  auto messages = std::make_unique<EncryptedMessages>(address_towards(launch.root.value_or(Endpoint{})), key,
                                                      matched_bits, options);
  wipe(key);
  return messages;
}

}  // namespace waywiser
