#include "waywiser/comm/bootstrap/sharing.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <future>

#include "tests/comm/with_runtime_folder.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

using Parts = std::vector<std::vector<std::byte>>;

class Sharing : public WithRuntimeFolder {
 protected:
  static constexpr Seconds patience = 20;
  static std::vector<std::byte> part(int rank) {
    return std::vector<std::byte>(static_cast<std::size_t>(rank) * 20'000, static_cast<std::byte>(rank));
  }
  static Parts parts_of(const SharedParts& shared) {
    Parts parts;
    for (std::size_t rank = 0; rank < shared.size(); ++rank)
      parts.emplace_back(shared[rank].begin(), shared[rank].end());
    return parts;
  }
  template <typename Then>
  static auto come(int rank, int size, Then then) {
    return std::async(std::launch::async, [=] {
      const Launch launch{"test", rank, size, "sharing-job", {}, ""};
      Muster muster = meet(launch, introduce(launch), Deadline::in(patience));
      return then(muster);
    });
  }
  static auto share(int rank, int size) {
    return come(rank, size, [=](Muster& muster) {
      const Parts first = parts_of(share_with_all(muster, rank, part(rank), Deadline::in(patience)));
      EXPECT_EQ(parts_of(share_with_all(muster, rank, part(rank), Deadline::in(patience))), first);
      const SharedParts alike = share_with_all(muster, rank, part(1), Deadline::in(patience));
      EXPECT_EQ(alike.parts().size(), 1u);
      EXPECT_EQ(parts_of(alike), Parts(static_cast<std::size_t>(size), part(1)));
      return first;
    });
  }
};

TEST_F(Sharing, AllHaveAllInOrder) {
  auto second = share(2, 3), first = share(1, 3), root = share(0, 3);
  const Parts all{part(0), part(1), part(2)};
  EXPECT_EQ(root.get(), all);
  EXPECT_EQ(first.get(), all);
  EXPECT_EQ(second.get(), all);
}

TEST_F(Sharing, AloneThereIsOnePart) { EXPECT_EQ(share(0, 1).get(), Parts{part(0)}); }

TEST_F(Sharing, AllHearWhyOneRefuses) {
  auto refuses = come(1, 3, [](Muster& muster) {
    tell_refusal(muster, "rank 1: it has no room");
    return 0;
  });
  auto second = share(2, 3), root = share(0, 3);
  refuses.get();
  for (auto* rank : {&root, &second}) try {
      rank->get();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {  // perhaps it was still joining
      EXPECT_TRUE(std::string(error.what()).ends_with("rank 1: it has no room")) << error.what();
    }
}

TEST_F(Sharing, OneThatIsStillSendingHearsWhy) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  Connection(Descriptor(ends[0]), 4096).send(refused_frame("rank 1: it has no room"), Deadline::in(patience));
  Muster muster;
  muster.ranks.resize(3);
  muster.lines[0] = std::make_unique<Connection>(Descriptor(ends[1]), 4096);
  try {
    share_with_all(muster, 2, part(2), Deadline::in(patience));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "rank 1: it has no room");
  }
}

TEST_F(Sharing, OneThatEndsIsNamed) {
  auto ends = come(1, 2, [](Muster&) { return 0; });
  auto root = share(0, 2);
  try {
    root.get();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_EQ(std::string(error.what()).find("rank 1 while the group formed: it has ended"), 0u) << error.what();
  }
}

}  // namespace
}  // namespace waywiser
