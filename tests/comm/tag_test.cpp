#include "waywiser/comm/message/tag.hpp"

#include <gtest/gtest.h>

namespace waywiser {
namespace {

// An exchange that is prepared takes the way that its messages would take without: it must not be slower.
TEST(Tag, MessagesOfExchangesGoAsMessagesDoAndThoseOfCollectivesAsTheirs) {
  for (const CallKind kind : {CallKind::send, CallKind::recv, CallKind::neighbor_exchange})
    EXPECT_FALSE(is_of_collective(make_tag(7, is_collective(kind), 3, 9, Call{kind}))) << name(kind);
  for (const CallKind kind : {CallKind::barrier, CallKind::all_reduce, CallKind::broadcast, CallKind::all_to_all})
    EXPECT_TRUE(is_of_collective(make_tag(7, is_collective(kind), 3, 9, Call{kind}))) << name(kind);
}

}  // namespace
}  // namespace waywiser
