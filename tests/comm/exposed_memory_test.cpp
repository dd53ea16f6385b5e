#include "waywiser/comm/peer_memory/exposed_memory.hpp"

#include <gtest/gtest.h>

#include <string>

namespace waywiser {
namespace {

// Records the windows that come and go; keeps those that have gone.
struct Diary : ExposedMemory::Watcher {
  void came(unsigned slot, const ExposedMemory::Window& window) override {
    text += "+" + std::to_string(slot) + " of " + std::to_string(window.ranks.size()) + " ";
  }
  void went(unsigned slot, const ExposedMemory::Window& window) noexcept override {
    text += "-" + std::to_string(slot) + " ";
    kept = window.mapped;
  }
  std::string text;
  std::shared_ptr<const void> kept;
};

ExposedMemory::Window window_of(std::size_t ranks) { return {std::vector<Region>(ranks), std::make_shared<int>(), {}}; }

TEST(ExposedMemory, TellsOfWindowsThatAreThereComeAndGo) {
  ExposedMemory exposed;
  Diary diary;
  exposed.add(3, window_of(2));
  exposed.add(ExposedMemory::slots, window_of(2));
  exposed.remove(3);
  exposed.watch(&diary);
  exposed.add(1, window_of(4));
  exposed.remove(ExposedMemory::slots);
  exposed.watch(nullptr);
  exposed.remove(1);
  EXPECT_EQ(diary.text, "+15 of 2 +1 of 4 -15 ");
}

TEST(ExposedMemory, ASlotIsInUseUntilNobodyKeepsWhatWasThere) {
  ExposedMemory exposed;
  Diary diary;
  exposed.watch(&diary);
  exposed.add(2, window_of(2));
  EXPECT_EQ(exposed.in_use(), 4u);
  exposed.remove(2);
  EXPECT_EQ(exposed.in_use(), 4u);
  diary.kept.reset();
  EXPECT_EQ(exposed.in_use(), 0u);
}

}  // namespace
}  // namespace waywiser
