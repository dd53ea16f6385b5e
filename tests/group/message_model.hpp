#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/group/group.hpp"

namespace waywiser {

using Int32s = std::vector<std::int32_t>;

inline Int32s message_numbers(int source, int number, std::size_t count) {
  Int32s values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = source * 1'000'000 + number * 1000 + static_cast<int>(i % 1000);
  return values;
}

// What one rank sends to rank 0, in this order; all ranks know it.
struct SentMessage {
  int tag;
  std::size_t count;
  int number;
};
constexpr int tags = 3;

// A receive that rank 0 has posted, and what it was told.
struct PostedReceive {
  PostedReceive(int source, int tag, std::size_t room) : from(source), wanted(tag), data(room) {}
  int from, wanted;
  Int32s data;
  MessageStatus status;
  Future future;

  bool takes(int source, int tag) const {
    return (from == any_source || from == source) && (wanted == any_tag || wanted == tag);
  }
};

// Posts receives at random, such that each has a message whatever the wildcards before it take, and checks MPI's rules:
// a receive takes the earliest message of its sender that it matches and that no receive before it has taken.
class MessageModel {
 public:
  MessageModel(Group& group, std::vector<std::vector<SentMessage>> sent, std::mt19937& random)
      : group_(group), left_(std::move(sent)), random_(random) {}

  void run() {
    while (std::ranges::any_of(left_, [](const auto& of_rank) { return !of_rank.empty(); })) {
      const auto choice = random_() % 8;
      if (choice == 0)
        settle();
      else if (choice == 1)
        probe();
      else
        post();
      if (!posted_.empty() && choice == 2) static_cast<void>(posted_[random_() % posted_.size()]->future.done());
    }
    settle();
    require_that(!group_.probe(any_source, any_tag, 0), "no message is left");
  }

 private:
  // Messages that match, less the receives that may take one of them.
  long surely(int source, int tag) const {
    long count = 0;
    for (int rank = 0; rank < group_.size(); ++rank)
      for (const SentMessage& one : left_[static_cast<std::size_t>(rank)])
        if ((source == any_source || source == rank) && (tag == any_tag || tag == one.tag)) ++count;
    for (const auto& one : posted_)
      if ((one->from == any_source || source == any_source || one->from == source) &&
          (one->wanted == any_tag || tag == any_tag || one->wanted == tag))
        --count;
    return count;
  }

  void post() {
    const int source =
        random_() % 2 == 0 ? any_source : static_cast<int>(random_() % static_cast<unsigned>(group_.size()));
    const int tag = random_() % 2 == 0 ? any_tag : static_cast<int>(random_() % tags);
    if (surely(source, tag) <= 0) return settle();
    posted_.push_back(std::make_unique<PostedReceive>(source, tag, 100000));
    PostedReceive& one = *posted_.back();
    const bool waits = random_() % 3 == 0;
    one.future = group_.recv(std::span(one.data), source, tag, waits ? Mode::wait : Mode::begin, &one.status);
  }

  // With nothing posted, what a probe finds is the first message that it matches, and stays so.
  void probe() {
    settle();
    const int tag = random_() % 2 == 0 ? any_tag : static_cast<int>(random_() % tags);
    if (surely(any_source, tag) <= 0) return;
    const MessageStatus found = group_.probe(any_source, tag).value();
    const MessageStatus again = group_.probe(found.source, tag, 0).value();
    require_that(again.tag == found.tag && again.count == found.count, "a probe finds the same message again");
    PostedReceive one(found.source, found.tag, found.count);
    group_.recv(std::span(one.data), found.source, found.tag);
    one.status = found;
    one.wanted = tag;
    check(one);
  }

  void settle() {
    while (!posted_.empty()) {
      posted_.front()->future.wait();
      check(*posted_.front());
      posted_.erase(posted_.begin());
    }
  }

  void check(const PostedReceive& one) {
    require_that(one.takes(one.status.source, one.status.tag), "a message that was not asked for");
    auto& of_rank = left_[static_cast<std::size_t>(one.status.source)];
    const auto first = std::ranges::find_if(
        of_rank, [&](const SentMessage& sent) { return one.wanted == any_tag || one.wanted == sent.tag; });
    require_that(first != of_rank.end() && first->tag == one.status.tag && first->count == one.status.count &&
                     one.status.type == DataType::int32,
                 "message " + std::to_string(one.status.count) + " of rank " + std::to_string(one.status.source));
    const Int32s expected = message_numbers(one.status.source, first->number, first->count);
    require_that(std::ranges::equal(expected, std::span(one.data).first(first->count)), "its bytes");
    of_rank.erase(first);
  }

  Group& group_;
  std::vector<std::vector<SentMessage>> left_;  // what no settled receive has taken
  std::mt19937& random_;
  std::vector<std::unique_ptr<PostedReceive>> posted_;
};

}  // namespace waywiser
