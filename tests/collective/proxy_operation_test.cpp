#include "waywiser/collective/proxy/proxy_operation.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/group/inside.hpp"

namespace waywiser {
namespace {

// Notes that it has begun, and is over.
class NotedPart : public ProxyPart {
 public:
  NotedPart(std::string name, std::vector<std::string>& begun) : name_(std::move(name)), begun_(begun) {}

  void take(StreamStaging&) override {}
  void fetch(Stream&) override {}
  void put_back(Stream&) override {}
  bool advance() override {
    begun_.push_back(name_);
    return true;
  }
  const Call& call() const override { return call_; }
  std::string progress_text() const override { return name_; }
  void abandon() noexcept override {}

 private:
  const std::string name_;
  std::vector<std::string>& begun_;
  const Call call_{CallKind::send, DataType::int32};
};

// Of two short messages on a stream the later one is asked first, when the stream has passed both.
TEST(ProxyOperation, BeginsAfterThoseBeforeIt) {
  TestRanks ranks(1);
  ranks.virtual_gpus = 1;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu(0));
    const auto gate = std::make_shared<StreamGate>(*group.platform(), gpu(0), 0);
    std::vector<std::string> begun;
    const auto operation = [&](const char* name) {
      ProxyOperation::Parts parts;
      parts.push_back(std::make_unique<NotedPart>(name, begun));
      return std::make_unique<ProxyOperation>(session_of(group), Call{CallKind::send, DataType::int32}, gate,
                                              gate->note(*stream), 0, std::move(parts));
    };
    const auto first = operation("first"), second = operation("second");
    stream->synchronize(Deadline::in(20));
    require_that(!second->advance() && begun.empty(), "the second waits for the first");
    require_that(first->advance() && second->advance(), "both are over");
    require_that(begun == std::vector<std::string>{"first", "second"}, "in the order of the calls");
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
