#pragma once

#include <memory>
#include <string>

#include "waywiser/comm/bootstrap/launch.hpp"
#include "waywiser/comm/network/encrypted_messages.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {

// Whether an environment variable is 1. Throws invalid_input for values other than 0 and 1.
bool switched_on(const char* name);
// The carrier of this rank's encrypted messages to and from other machines. It listens on the network of the job's
// root. The kernel encrypts if WAYWISER_KERNEL_TLS is 1, or if it is not set, the plan (nullptr: none) says so and the
// kernel can. Throws unavailable without OpenSSL's libssl, without a secret, or if the variable requires a kernel that
// can encrypt and it cannot; io.
std::unique_ptr<EncryptedMessages> encrypted_messages(const Launch& launch, const Chooser* chooser);
// What is to encrypt them, known before the first connection: "openssl" or "kernel".
std::string wanted_encryption(const Chooser* chooser);

}  // namespace waywiser
