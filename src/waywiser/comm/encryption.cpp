#include "waywiser/comm/encryption.hpp"

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/job_network.hpp"
#include "waywiser/comm/root_network.hpp"
#include "waywiser/comm/tag.hpp"

namespace waywiser {
namespace {

constexpr std::string_view purpose = "waywiser encrypted messages";

bool is_on(const char* name) {
  const std::string value = environment(name).value_or("0");
  if (value != "0" && value != "1")
    throw Error(ErrorKind::invalid_input, std::string(name) + "='" + value.substr(0, 40) + "': it is 0 or 1");
  return value == "1";
}

}  // namespace

bool wants_encryption() { return is_on("WAYWISER_ENCRYPT"); }

std::unique_ptr<EncryptedMessages> encrypted_messages(const Launch& launch) {
  if (launch.secret.empty())
    throw Error(ErrorKind::unavailable,
                "messages are encrypted with keys of a WAYWISER_SECRET that all ranks of the job know: there is none");
  const bool by_kernel = is_on("WAYWISER_KERNEL_TLS");
  TlsKey key = hmac_sha256(launch.secret.bytes(), std::as_bytes(std::span(purpose)));
  auto messages = std::make_unique<EncryptedMessages>(address_towards(launch.root.value_or(Endpoint{})), key,
                                                      matched_bits, by_kernel);
  wipe(key);
  return messages;
}

}  // namespace waywiser
