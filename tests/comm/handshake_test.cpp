#include "waywiser/comm/bootstrap/handshake.hpp"

#include <gtest/gtest.h>

namespace waywiser {
namespace {

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
