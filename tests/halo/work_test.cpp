#include "waywiser/halo/work.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/halo/made_up_domain.hpp"
#include "waywiser/halo/halo_schedule.hpp"

namespace waywiser {
namespace {

Bytes sum(const std::vector<Bytes>& bytes) { return std::accumulate(bytes.begin(), bytes.end(), Bytes{0}); }

TEST(HaloWork, MessagesAreThoseOfTheSchedules) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const MadeUpDomain domain = MadeUpDomain::of_lists(3, seed);
    for (const HaloPartition& partition : domain.partitions) {
      const HaloBoundary boundary = boundary_of(partition, domain.fields);
      for (const HaloVariant variant : halo_variants) {
        const ScheduleCounts counts(halo_schedule(variant, boundary));
        const HaloWork work = work_of(variant, boundary, true);
        EXPECT_EQ(work.messages.size(), counts.messages);
        EXPECT_EQ(sum(work.messages), counts.message_bytes);
        if (variant == HaloVariant::packed || variant == HaloVariant::per_neighbor || variant == HaloVariant::strided) {
          EXPECT_EQ(sum(work.out), counts.message_bytes) << name(variant);
        }
      }
    }
  }
}

}  // namespace
}  // namespace waywiser
