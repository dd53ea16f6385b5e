#include "waywiser/comm/sha256.hpp"

#include <gtest/gtest.h>

#include <string>

#include "waywiser/comm/handshake.hpp"

namespace waywiser {
namespace {

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(Sha256, VectorsOfTheStandard) {
  EXPECT_EQ(hexadecimal(sha256(bytes(""))), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hexadecimal(sha256(bytes("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hexadecimal(sha256(bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hexadecimal(sha256(bytes(std::string(1000000, 'a')))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// RFC 4231, cases 1, 2, 6 and 7.
TEST(Sha256, VectorsOfTheKeyedHash) {
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

TEST(Handshake, ProofsDifferByRoleSecretRankAndNumbers) {
  const Handshake words{3, random_nonce(), random_nonce()};
  EXPECT_TRUE(equal(words.member_proof("secret"), words.member_proof("secret")));
  EXPECT_FALSE(equal(words.member_proof("secret"), words.root_proof("secret")));
  EXPECT_FALSE(equal(words.member_proof("secret"), words.member_proof("Secret")));
  Handshake other = words;
  other.rank = 4;
  EXPECT_FALSE(equal(words.member_proof("secret"), other.member_proof("secret")));
  other = words;
  other.root = random_nonce();
  EXPECT_FALSE(equal(words.member_proof("secret"), other.member_proof("secret")));
}

}  // namespace
}  // namespace waywiser
