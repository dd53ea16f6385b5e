#pragma once

#include <memory>

#include "waywiser/comm/bootstrap/launch.hpp"
#include "waywiser/comm/network/encrypted_messages.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {

// WAYWISER_ENCRYPT is 1. Throws invalid_input for other values than 0 and 1.
bool wants_encryption();
// What carries the messages of this rank to and from other machines where they are encrypted. It listens on the network
// of the job's root. The kernel encrypts where WAYWISER_KERNEL_TLS is 1, or where it is not set and the plan (nullptr:
// none) says so, and the kernel can. Throws unavailable without OpenSSL's libssl, without a secret, or without a kernel
// that does what the variable asks for; io.
std::unique_ptr<EncryptedMessages> encrypted_messages(const Launch& launch, const Chooser* chooser);

}  // namespace waywiser
