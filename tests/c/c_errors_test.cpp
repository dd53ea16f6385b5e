#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "tests/c/error_text.hpp"
#include "waywiser/c/handles.hpp"
#include "waywiser/c/waywiser.h"

namespace waywiser {
namespace {

TEST(CErrors, EveryExceptionHasACodeANameAndItsText) {
  const std::pair<ErrorKind, int> kinds[] = {{ErrorKind::invalid_input, WW_INVALID_INPUT},
                                             {ErrorKind::unavailable, WW_UNAVAILABLE},
                                             {ErrorKind::timeout, WW_TIMEOUT},
                                             {ErrorKind::device, WW_DEVICE},
                                             {ErrorKind::io, WW_IO},
                                             {ErrorKind::corrupt, WW_CORRUPT},
                                             {ErrorKind::interrupted, WW_INTERRUPTED}};
  for (const auto& [kind, code] : kinds) {
    const std::string why = "reason " + std::to_string(code);
    EXPECT_EQ(guarded([&, kind = kind] { throw Error(kind, why); }), code);
    EXPECT_NE(c_error_text().find(why), std::string::npos) << c_error_text();
    EXPECT_STRNE(ww_error_name(code), ww_error_name(-1));
  }
  EXPECT_EQ(guarded([] { throw std::bad_alloc(); }), WW_NO_MEMORY);
  EXPECT_EQ(c_error_text(), "no memory");
  EXPECT_EQ(guarded([] { throw std::logic_error("a defect"); }), WW_INTERNAL);
  EXPECT_EQ(c_error_text(), "a defect");
  EXPECT_EQ(guarded([] { throw 5; }), WW_INTERNAL);
  EXPECT_NE(c_error_text(), "a defect");
  EXPECT_STREQ(ww_error_name(WW_INTERNAL + 1), ww_error_name(-1));
}

TEST(CErrors, ATextBelongsToItsThreadAndStaysUntilTheNextFailure) {
  EXPECT_EQ(ww_close(nullptr), WW_INVALID_INPUT);
  const std::string here = c_error_text();
  EXPECT_EQ(guarded([] {}), WW_OK);
  std::string before = "?", there;
  std::thread([&] {
    before = c_error_text();
    static_cast<void>(guarded([] { throw std::logic_error("elsewhere"); }));
    there = c_error_text();
  }).join();
  EXPECT_EQ(before, "");
  EXPECT_EQ(there, "elsewhere");
  EXPECT_EQ(c_error_text(), here);
}

TEST(CTypes, HaveTheSizesOfTheirElements) {
  const std::size_t sizes[] = {8, 4, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 8, 16, 1, 1};
  for (int type = 0; type < 16; ++type) EXPECT_EQ(ww_type_size(static_cast<ww_type>(type)), sizes[type]) << type;
}

}  // namespace
}  // namespace waywiser
