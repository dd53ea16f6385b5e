#include "waywiser/base/crypto.hpp"

#include <gtest/gtest.h>

#include <string>

namespace waywiser {
namespace {

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

// RFC 4231, cases 1, 2, 6 and 7.
TEST(Crypto, VectorsOfTheKeyedHash) {
  EXPECT_EQ(hexadecimal(hmac_sha256(bytes(std::string(20, '\x0b')), bytes("Hi There"))),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hexadecimal(hmac_sha256(bytes("Jefe"), bytes("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  const std::string long_key(131, '\xaa');
  EXPECT_EQ(hexadecimal(hmac_sha256(bytes(long_key), bytes("Test Using Larger Than Block-Size Key - Hash Key First"))),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(hexadecimal(hmac_sha256(
                bytes(long_key), bytes("This is a test using a larger than block-size key and a larger than block-size "
                                       "data. The key needs to be hashed before being used by the HMAC algorithm."))),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(Crypto, ASecretIsWiped) {
  Secret secret(std::string(40, 'x'));  // too long to stand in the object itself
  const std::byte* where = secret.bytes().data();
  const auto size = secret.size();
  EXPECT_EQ(where[0], std::byte{'x'});
  secret.forget();
  EXPECT_TRUE(secret.empty());
  for (std::size_t i = 0; i < size; ++i) EXPECT_EQ(where[i], std::byte{0}) << i;  // the text keeps its memory
}

}  // namespace
}  // namespace waywiser
