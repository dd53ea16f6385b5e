#pragma once

#include <memory>

#include "waywiser/comm/encrypted_messages.hpp"
#include "waywiser/comm/launch.hpp"

namespace waywiser {

// WAYWISER_ENCRYPT is 1. Throws invalid_input for other values than 0 and 1.
bool wants_encryption();
// What carries the messages of this rank to and from other machines where they are encrypted. It listens on the network
// of the job's root. Throws unavailable without OpenSSL's libssl or without a secret, and io.
std::unique_ptr<EncryptedMessages> encrypted_messages(const Launch& launch);

}  // namespace waywiser
