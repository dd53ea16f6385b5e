#include "waywiser/base/units.hpp"

#include <gtest/gtest.h>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

TEST(Units, BytesReadBackWhatWasWritten) {
  for (const Bytes bytes : {Bytes{0}, Bytes{1}, Bytes{1000}, Bytes{65536}, Bytes{3} << 20, Bytes{1} << 30}) {
    EXPECT_EQ(parse_bytes(format_bytes(bytes)), bytes);
  }
}

TEST(Units, TextThatIsNoSizeIsRefused) {
  for (const char* text : {"", "K", "-1", "1.5M", "12Q", "99999999999999999999", "99999999999G"}) {
    EXPECT_THROW(parse_bytes(text), Error) << text;
  }
}

}  // namespace
}  // namespace waywiser
